//! The compiled part of the Python package `fedgenie`.

mod algorithm;
mod apart;
mod arrays;
mod asked;
mod bound;
mod choice;
mod chooser;
mod command;
mod context;
mod draws;
mod errors;
mod feedback;
mod frames;
mod job;
mod kept;
mod policy;
mod results;
mod running;
mod setup;
mod simulation;
mod subsets;
mod task;
mod verifying;
mod waiting;
mod wants;
mod weights;

use pyo3::prelude::*;

/// The compiled part.
#[pymodule]
fn _fedgenie(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<algorithm::Updates>()?;
    module.add_class::<apart::Apart>()?;
    module.add_class::<apart::Gathering>()?;
    module.add_class::<asked::Ask>()?;
    module.add_class::<bound::BoundWorld>()?;
    module.add_class::<draws::Draws>()?;
    module.add_class::<choice::Choice>()?;
    module.add_class::<chooser::Chooser>()?;
    module.add_class::<context::Context>()?;
    module.add_class::<feedback::Feedback>()?;
    module.add_class::<feedback::Jobs>()?;
    module.add_class::<feedback::Trained>()?;
    module.add_class::<feedback::Round>()?;
    module.add_class::<subsets::Subsets>()?;
    module.add_class::<frames::Columns>()?;
    module.add_class::<results::Results>()?;
    module.add_class::<job::TaskJob>()?;
    module.add_class::<job::TaskUpdate>()?;
    module.add_function(wrap_pyfunction!(apart::gather, module)?)?;
    module.add_function(wrap_pyfunction!(apart::merge, module)?)?;
    module.add_function(wrap_pyfunction!(apart::so_far, module)?)?;
    module.add_function(wrap_pyfunction!(command::command, module)?)?;
    module.add_function(wrap_pyfunction!(chooser::chooser, module)?)?;
    module.add_function(wrap_pyfunction!(running::run, module)?)?;
    module.add_function(wrap_pyfunction!(results::load, module)?)?;
    module.add_class::<simulation::Playing>()?;
    module.add_function(wrap_pyfunction!(simulation::play, module)?)?;
    module.add_function(wrap_pyfunction!(verifying::verify, module)?)?;
    Ok(())
}
