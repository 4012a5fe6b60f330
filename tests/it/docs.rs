//! The documentation: its links lead somewhere, its pages are in the book, and its commands run.

mod commands;
mod links;
mod pages;
