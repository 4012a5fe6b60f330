//! Failures of code from outside: of a policy, a task or a rule that a program brings.
//!
//! A method that such code implements returns `Result<_, Failure>`. `?` and `into` make a failure of any error, and of
//! a text. A run that meets one ends, and keeps it as the [source](std::error::Error::source) of its own error, from
//! which a caller downcasts to the type that failed.
//!
//! # Example
//! ```
//! use fedgenie_core::failure::Failure;
//!
//! fn read(text: &str) -> Result<u32, Failure> {
//!     let number = text.parse()?;
//!     if number > 9 { Err("found a number above 9".into()) } else { Ok(number) }
//! }
//!
//! assert!(read("x").unwrap_err().is::<std::num::ParseIntError>());
//! assert_eq!(read("10").unwrap_err().to_string(), "found a number above 9");
//! ```

use std::error::Error;

/// Why code from outside failed.
pub type Failure = Box<dyn Error + Send + Sync>;
