//! The memory of heads, which the requests of a thread use one after another.

use std::cell::RefCell;

use super::field::Entry;
use crate::pool::FreeList;

/// The text of a head, and the table of its fields.
#[derive(Debug, Default)]
pub(super) struct HeadMemory {
    pub(super) text: Vec<u8>,
    pub(super) entries: Vec<Entry>,
}

impl HeadMemory {
    /// Makes room for a value. A long text grows by little more than it needs, because many heads may be under way.
    pub(super) fn reserve(&mut self, value: usize) {
        if self.text.len() + value > MAX_TEXT && self.text.capacity() - self.text.len() < value + ROOM {
            self.text.reserve_exact(value + 4 * ROOM);
        }
    }
}

/// Empty memory, with capacity if the pool has some.
pub(super) fn take() -> HeadMemory {
    POOL.with_borrow_mut(FreeList::take).unwrap_or_default()
}

/// Gives memory back.
pub(super) fn put(mut memory: HeadMemory) {
    if memory.text.capacity() == 0 && memory.entries.capacity() == 0
        || memory.text.capacity() > MAX_TEXT
        || memory.entries.capacity() > MAX_FIELDS
    {
        return;
    }
    memory.text.clear();
    memory.entries.clear();
    // While a thread ends there is no pool.
    let _ = POOL.try_with(|pool| pool.borrow_mut().put(memory));
}

thread_local! {
    static POOL: RefCell<FreeList<HeadMemory>> = const { RefCell::new(FreeList::empty()) };
}

/// In bytes: a name, and what stands around it.
const ROOM: usize = 256;

/// In bytes: few heads are longer.
const MAX_TEXT: usize = 8 * 1024;

/// Few heads have more fields.
const MAX_FIELDS: usize = 64;
