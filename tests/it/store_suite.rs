//! One suite for all stores: what a lock promises wherever its records are kept.

mod exclusion;
mod fencing;
mod limits;
mod nested;
mod observed;
mod ownership;
mod scope;
mod shutdown;
