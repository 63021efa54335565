//! The operator's limits for one mailbox: they go before what a command asks for.

use zerocopy::FromZeros as _;
use zerocopy::little_endian::U32;

use crate::changes::Changes;
use crate::error::BadState;
use crate::expiry::Lifetime;
use crate::layout::{Offsets, Overrides, Parts, clear};
use crate::limits::Wish;
use crate::redate::settle;
use crate::value::Value;
use crate::window::WindowKind;

/// What an operator wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Override {
    /// These limits from now on; those that are not given stay as they are.
    Set(Wish),
    /// None any more.
    Reset,
}

/// What is in force after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overridden {
    /// The operator's limits.
    pub limits: Wish,
    /// How long the value is kept.
    pub lifetime: Lifetime,
    /// What changed and has to be replicated, if anything did.
    pub changes: Option<Changes>,
}

/// Sets, drops or (with an empty wish) only reads the operator's limits of a mailbox. A mailbox
/// without a value gets one if there is something to keep in it.
///
/// # Errors
/// If the value is not one of ours; it is left as it is.
pub fn override_limits(
    value: &mut impl Value,
    kind: WindowKind,
    wanted: Override,
    now_ms: u64,
) -> Result<Overridden, BadState> {
    let mut changes = Changes::none();
    if value.bytes().is_empty() {
        if matches!(wanted, Override::Reset) || wanted == Override::Set(Wish::default()) {
            return Ok(Overridden {
                limits: Wish::default(),
                lifetime: Lifetime::Expires,
                changes: None,
            });
        }
        clear(value, kind, 0);
        changes = Changes::Whole;
    }
    settle(value, kind, now_ms)?;
    let mut parts = Parts::of(value.bytes())?;
    let before = parts.header.overrides;
    match wanted {
        Override::Set(limits) => parts.header.overrides.set(limits),
        Override::Reset => parts.header.overrides = Overrides::new_zeroed(),
    }
    let after = parts.header.overrides;
    let is_another = after.wish() != before.wish();
    if is_another {
        let offset = Offsets::of(parts.kind).overrides;
        changes.add(offset..offset.saturating_add(size_of::<Overrides>()));
        parts.replicate(&mut changes);
    }
    Ok(Overridden {
        limits: after.wish(),
        lifetime: after.lifetime(),
        changes: is_another.then_some(changes),
    })
}

impl Overrides {
    /// The limits that are there.
    pub fn wish(&self) -> Wish {
        let given = |limit: U32| Some(limit.get()).filter(|&limit| limit != 0);
        Wish {
            per_minute: given(self.per_minute),
            per_day: given(self.per_day),
            concurrent: given(self.concurrent),
        }
    }

    /// A value that holds some does not expire.
    pub fn lifetime(&self) -> Lifetime {
        if self.wish() == Wish::default() {
            Lifetime::Expires
        } else {
            Lifetime::Kept
        }
    }

    fn set(&mut self, limits: Wish) {
        let replace = |place: &mut U32, limit: Option<u32>| {
            if let Some(limit) = limit {
                place.set(limit);
            }
        };
        replace(&mut self.per_minute, limits.per_minute);
        replace(&mut self.per_day, limits.per_day);
        replace(&mut self.concurrent, limits.concurrent);
    }
}
