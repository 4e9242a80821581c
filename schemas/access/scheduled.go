package access

import "time"

// Scheduled is a value that can change at an instant in the future. What is set later replaces what was
// scheduled and has not begun. The zero Scheduled holds the zero value for ever.
type Scheduled[T any] struct {
	current T
	next    *scheduledChange[T]
}

type scheduledChange[T any] struct {
	from  time.Time
	value T
}

// Set makes value hold from an instant on; recorded is when that was decided.
func (s *Scheduled[T]) Set(value T, from, recorded time.Time) {
	s.current, s.next = s.At(recorded), nil
	if from.After(recorded) {
		s.next = &scheduledChange[T]{from, value}
		return
	}
	s.current = value
}

// At is the value at an instant not before the last Set was recorded.
func (s *Scheduled[T]) At(t time.Time) T {
	if s.next != nil && !t.Before(s.next.from) {
		return s.next.value
	}
	return s.current
}

// Next is what is scheduled to hold after t, and from when.
func (s *Scheduled[T]) Next(t time.Time) (value T, from time.Time, ok bool) {
	if s.next == nil || !t.Before(s.next.from) {
		return value, from, false
	}
	return s.next.value, s.next.from, true
}
