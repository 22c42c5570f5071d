//! Rate limits: counted in this process's memory, or in Redis for all processes.

mod attempts;
mod diagnostic;
mod memory;
mod server;
mod shared;

pub use self::{
    attempts::MemoryAttempts,
    diagnostic::RedisDiagnostic,
    memory::MemoryLimiter,
    server::{InvalidRedis, Redis, RedisTls},
    shared::RedisLimiter,
};
