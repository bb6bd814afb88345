//! Memory that the requests of a thread use one after another, so that a request in the steady state allocates none.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::{fmt, mem};

/// A value on the heap, like a `Box`. Its memory comes from the pool of the thread, and goes back to it.
pub struct Pooled<T: Pool>(
    /// `None` only while this is dropped.
    Option<Box<Option<T>>>,
);

impl<T: Pool> Pooled<T> {
    pub fn new(value: T) -> Self {
        Self::made_by(|| value)
    }

    /// Makes the value in its place, so that a large one is not moved there.
    #[inline]
    pub fn made_by(make: impl FnOnce() -> T) -> Self {
        let mut place = T::with_free(FreeList::take).flatten().unwrap_or_default();
        place.get_or_insert_with(make);
        Self(Some(place))
    }
}

impl<T: Pool> Deref for Pooled<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().and_then(Option::as_ref).expect("it is not dropped")
    }
}

impl<T: Pool> DerefMut for Pooled<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_deref_mut().and_then(Option::as_mut).expect("it is not dropped")
    }
}

impl<T: Pool> Drop for Pooled<T> {
    fn drop(&mut self) {
        if let Some(mut place) = self.0.take() {
            // In place: the value may be large.
            *place = None;
            // While a thread ends there is no pool.
            let _ = T::with_free(|free| free.put(place));
        }
    }
}

impl<T: Pool + fmt::Debug> fmt::Debug for Pooled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// A type with a pool on each thread: [`pool_of!`] makes it.
pub trait Pool: Sized + 'static {
    /// Uses the pool of this thread. `None`: the thread ends.
    fn with_free<R>(then: impl FnOnce(&mut FreeList<Box<Option<Self>>>) -> R) -> Option<R>;
}

macro_rules! pool_of {
    ($pooled:ty) => {
        impl $crate::words::pool::Pool for $pooled {
            fn with_free<R>(
                then: impl FnOnce(&mut $crate::words::pool::FreeList<Box<Option<Self>>>) -> R,
            ) -> Option<R> {
                use std::cell::RefCell;

                use $crate::words::pool::FreeList;

                thread_local! {
                    static FREE: RefCell<FreeList<Box<Option<$pooled>>>> = const { RefCell::new(FreeList::empty()) };
                }
                FREE.try_with(|free| then(&mut free.borrow_mut())).ok()
            }
        }
    };
}

pub(crate) use pool_of;

/// Bytes that are being written. Their memory comes from the pool of the thread, and goes back to it.
#[derive(Debug, Default)]
pub struct Buffer(Vec<u8>);

impl Buffer {
    /// An empty buffer, with capacity if the pool has some.
    pub fn take() -> Self {
        Self(BUFFERS.try_with(|pool| pool.borrow_mut().take()).ok().flatten().unwrap_or_default())
    }
}

impl Deref for Buffer {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.0
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut buffer = mem::take(&mut self.0);
        if buffer.capacity() == 0 || buffer.capacity() > MAX_BUFFER {
            return;
        }
        buffer.clear();
        // While a thread ends there is no pool.
        let _ = BUFFERS.try_with(|pool| pool.borrow_mut().put(buffer));
    }
}

/// Memory that waits to be used again: as much as was in use at once lately.
#[derive(Debug)]
pub struct FreeList<T> {
    free: Vec<T>,
    /// The lowest number of free values in this period: this many were not needed.
    unused: usize,
    /// How often memory was given back in this period.
    returns: u32,
}

impl<T> FreeList<T> {
    pub const fn empty() -> Self {
        Self { free: Vec::new(), unused: 0, returns: 0 }
    }

    pub fn take(&mut self) -> Option<T> {
        let taken = self.free.pop();
        self.unused = self.unused.min(self.free.len());
        taken
    }

    pub fn put(&mut self, memory: T) {
        if self.free.len() < MOST_FREE {
            self.free.push(memory);
        }
        self.returns += 1;
        if self.returns == PERIOD {
            self.free_unused();
        }
    }

    /// Frees half of what this period did not need, and begins the next one.
    #[cold]
    fn free_unused(&mut self) {
        self.free.truncate(self.free.len() - self.unused / 2);
        (self.unused, self.returns) = (self.free.len(), 0);
    }
}

thread_local! {
    static BUFFERS: RefCell<FreeList<Vec<u8>>> = const { RefCell::new(FreeList::empty()) };
}

/// Enough for the concurrent requests of a busy core.
const MOST_FREE: usize = 8192;

/// After this many returns, values that were not needed meanwhile are freed.
const PERIOD: u32 = 4096;

/// In bytes: a head and a short body.
const MAX_BUFFER: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    struct Counted(Arc<()>);

    pool_of!(Counted);

    #[test]
    fn a_value_is_dropped_and_its_memory_used_again() {
        let value = Arc::new(());
        let pooled = Pooled::new(Counted(Arc::clone(&value)));
        let place = std::ptr::from_ref(&*pooled);
        assert_eq!(Arc::strong_count(&value), 2);
        drop(pooled);
        assert_eq!(Arc::strong_count(&value), 1);
        let again = Pooled::new(Counted(Arc::clone(&value)));
        assert_eq!(std::ptr::from_ref(&*again), place);
        assert!(Arc::ptr_eq(&(*again).0, &value));
    }

    #[test]
    fn as_much_is_kept_as_was_in_use_at_once_and_what_is_not_needed_is_freed_slowly() {
        let mut list = FreeList::empty();
        let use_at_once = |list: &mut FreeList<Box<u8>>, count: usize| {
            let taken: Vec<_> = (0..count).map(|_| list.take()).collect();
            let allocated = taken.iter().filter(|memory| memory.is_none()).count();
            for memory in taken {
                list.put(memory.unwrap_or_default());
            }
            allocated
        };
        assert_eq!(use_at_once(&mut list, 1000), 1000);
        for _ in 0..20 {
            assert_eq!(use_at_once(&mut list, 1000), 0);
        }
        for _ in 0..2 * PERIOD {
            assert_eq!(use_at_once(&mut list, 10), 0);
        }
        let kept = list.free.len();
        assert!((10..20).contains(&kept), "{kept}");
        assert_eq!(use_at_once(&mut list, 2 * MOST_FREE), 2 * MOST_FREE - kept);
        assert!(list.free.len() <= MOST_FREE);
    }

    #[test]
    fn a_buffer_comes_back_empty_and_a_large_one_not_at_all() {
        let mut buffer = Buffer::take();
        buffer.extend_from_slice(b"text");
        let place = buffer.as_ptr();
        drop(buffer);
        let again = Buffer::take();
        assert_eq!((again.as_ptr(), again.len()), (place, 0));
        let mut large = Buffer::take();
        large.reserve(2 * MAX_BUFFER);
        drop(large);
        assert_eq!(Buffer::take().capacity(), 0);
    }
}
