//! Rate limits: counted in this process's memory, or in Redis for all processes.

mod memory;
mod shared;

pub use self::{memory::MemoryLimiter, shared::RedisLimiter};
