//! Memory that the requests of a thread use one after another, so that a request in the steady state allocates none.

use std::any::Any;
use std::any::TypeId;
use std::cell::RefCell;
use std::fmt;
use std::mem;
use std::ops::Deref;
use std::ops::DerefMut;

/// A value on the heap, like a `Box`. Its memory comes from the pool of the thread, and goes back to it.
pub struct Pooled<T: 'static>(
    /// `None` only while this is dropped.
    Option<Box<Option<T>>>,
);

impl<T> Pooled<T> {
    pub fn new(value: T) -> Self {
        let mut place = take_place().unwrap_or_default();
        *place = Some(value);
        Self(Some(place))
    }
}

impl<T> Deref for Pooled<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().and_then(Option::as_ref).expect("it is not dropped")
    }
}

impl<T> DerefMut for Pooled<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_deref_mut().and_then(Option::as_mut).expect("it is not dropped")
    }
}

impl<T> Drop for Pooled<T> {
    fn drop(&mut self) {
        if let Some(mut place) = self.0.take() {
            // In place: the value may be large.
            *place = None;
            put_place(place);
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Pooled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Bytes that are being written. Their memory comes from the pool of the thread, and goes back to it.
#[derive(Debug, Default)]
pub struct Buffer(Vec<u8>);

impl Buffer {
    /// An empty buffer, with capacity if the pool has some.
    pub fn take() -> Self {
        Self(BUFFERS.try_with(|pool| pool.borrow_mut().pop()).ok().flatten().unwrap_or_default())
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
        let _ = BUFFERS.try_with(|pool| {
            let mut pool = pool.borrow_mut();
            if pool.len() < MAX_POOLED {
                pool.push(buffer);
            }
        });
    }
}

fn take_place<T: 'static>() -> Option<Box<Option<T>>> {
    let place = PLACES.try_with(|pool| {
        let mut pool = pool.borrow_mut();
        pool.iter_mut().find(|places| places.of == TypeId::of::<T>())?.free.pop()
    });
    place.ok().flatten()?.downcast().ok()
}

fn put_place<T: 'static>(place: Box<Option<T>>) {
    // While a thread ends there is no pool.
    let _ = PLACES.try_with(|pool| {
        let mut pool = pool.borrow_mut();
        let of = TypeId::of::<T>();
        let known = pool.iter().position(|places| places.of == of).unwrap_or_else(|| {
            pool.push(Places { of, free: Vec::new() });
            pool.len() - 1
        });
        let free = &mut pool[known].free;
        if free.len() < MAX_POOLED {
            free.push(place);
        }
    });
}

/// The free memory for values of one type.
struct Places {
    of: TypeId,
    free: Vec<Box<dyn Any>>,
}

thread_local! {
    /// Few types are pooled: a list is faster than a map.
    static PLACES: RefCell<Vec<Places>> = const { RefCell::new(Vec::new()) };
    static BUFFERS: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Enough for the concurrent requests of a busy core, but not for a burst.
const MAX_POOLED: usize = 64;

/// In bytes: a head and a short body.
const MAX_BUFFER: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_value_is_dropped_and_its_memory_used_again() {
        let value = Arc::new(());
        let pooled = Pooled::new(Arc::clone(&value));
        let place = std::ptr::from_ref(&*pooled);
        assert_eq!(Arc::strong_count(&value), 2);
        drop(pooled);
        assert_eq!(Arc::strong_count(&value), 1);
        let other = Pooled::new(7_u64);
        let again = Pooled::new(Arc::clone(&value));
        assert_eq!((std::ptr::from_ref(&*again), *other), (place, 7));
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
