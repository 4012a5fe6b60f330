//! Inputs that broke something once, as small as they can be.
