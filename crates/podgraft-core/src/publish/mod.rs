//! Publishes podgraft's kinds for other programs: JSON Schemas for editors and a CustomResourceDefinition for clusters.
//! Both are generated from the types that read files, so they always agree with the program.

pub mod crd;
pub mod schema;
mod structural;

#[cfg(test)]
mod stored_tests;
