//! podgraft's own kinds for other programs: JSON Schemas for editors, a CustomResourceDefinition for clusters. Both are
//! made of the types that read a file, so they cannot say something else.

pub mod crd;
pub mod schema;
mod structural;

#[cfg(all(test, feature = "schemas"))]
mod stored_tests;
