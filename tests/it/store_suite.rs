//! One suite for all stores: the promises of a lock, wherever its records are kept.

mod exclusion;
mod fencing;
mod limits;
mod nested;
mod observed;
mod ownership;
mod scope;
mod shutdown;
