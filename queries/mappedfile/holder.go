package mappedfile

import (
	"errors"
	"fmt"
	"sync"
)

// Guarded is a mapped file that notices its own damage.
type Guarded interface {
	// Guard runs a function that reads the file. A fault in the mapping ends the function with an error.
	Guard(func() error) error
	// Damage is the reason why the file must no longer be read; nil while it may be.
	Damage() error
	Close() error
}

// Holder holds the file that is served, if any, and the engine E that answers from it. Swap replaces both at any time without
// stopping queries. The old file is closed when its last reader is done, not before, because a read of an unmapped file crashes the
// process. The zero Holder serves no file. It is safe for concurrent use.
type Holder[E any] struct {
	// AbsenceError makes the error of a query when no file is served. The reason is that of a Withdraw, or the damage; nil if no
	// file was withdrawn. Without AbsenceError the errors are ErrNone and *WithdrawnError. It is set before the first query.
	AbsenceError func(reason error) error

	mu               sync.Mutex
	current          *Reading[E]
	withdrawnBecause error // why no file is served; nil if no file was withdrawn
}

// Reading is one use of a file and its engine. Release ends it.
type Reading[E any] struct {
	Engine  E
	file    Guarded
	owner   *Holder[E]
	readers int // the holder counts as a reader while it serves the file
}

// ErrNone says that no file is served.
var ErrNone = errors.New("none is served")

// WithdrawnError is the reason why an existing file is not served. It matches ErrNone.
type WithdrawnError struct{ Reason error }

func (e *WithdrawnError) Error() string { return fmt.Sprintf("%v: %v", ErrNone, e.Reason) }

func (e *WithdrawnError) Unwrap() []error { return []error{ErrNone, e.Reason} }

// Query runs a query on the served file's engine. If no file is served, it fails with the error that AbsenceError makes; without
// AbsenceError, with a *WithdrawnError after a Withdraw and with ErrNone otherwise. A file that turns out to be damaged during the
// query is withdrawn, and the query fails for that reason.
func Query[E, T any](h *Holder[E], query func(E) (T, error)) (result T, err error) {
	r, ok := h.Acquire()
	if !ok {
		return result, h.newAbsenceError(h.absenceReason())
	}
	defer r.Release()
	err = r.file.Guard(func() (err error) {
		result, err = query(r.Engine)
		return err
	})
	if damage := r.file.Damage(); damage != nil {
		var zero T
		h.withdraw(r, damage)
		return zero, h.newAbsenceError(damage)
	}
	return result, err
}

// Acquire begins a use of the served file; it returns false if no file is served. Queries should use Query instead, because only
// that notices damage.
func (h *Holder[E]) Acquire() (*Reading[E], bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current == nil || h.current.file.Damage() != nil {
		return nil, false
	}
	h.current.readers++
	return h.current, true
}

// absenceReason is the reason why no file is served; nil if no file was withdrawn.
func (h *Holder[E]) absenceReason() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current != nil && h.current.file.Damage() != nil {
		return h.current.file.Damage()
	}
	return h.withdrawnBecause
}

// newAbsenceError makes the error of a query while no file is served.
func (h *Holder[E]) newAbsenceError(reason error) error {
	switch {
	case h.AbsenceError != nil:
		return h.AbsenceError(reason)
	case reason != nil:
		return &WithdrawnError{reason}
	}
	return ErrNone
}

// Release ends one use. The last one closes the file.
func (r *Reading[E]) Release() {
	r.owner.mu.Lock()
	r.readers--
	isLast := r.readers == 0
	r.owner.mu.Unlock()
	if isLast {
		r.file.Close() // nothing can be done if unmapping fails
	}
}

// Swap serves a file and its engine from now on. It owns the file and closes it after a later Swap or Withdraw.
func (h *Holder[E]) Swap(file Guarded, engine E) {
	h.replace(nil, &Reading[E]{Engine: engine, file: file, owner: h, readers: 1}, nil)
}

// Withdraw stops serving. Until the next Swap queries fail with a *WithdrawnError for that reason, or with ErrNone if it is nil.
func (h *Holder[E]) Withdraw(reason error) { h.replace(nil, nil, reason) }

// withdraw stops serving a file that a reader found damaged, unless it has been replaced since.
func (h *Holder[E]) withdraw(r *Reading[E], reason error) { h.replace(r, nil, reason) }

// replace serves next instead of the current file. If expected is not nil, it does so only if that is the current file.
func (h *Holder[E]) replace(expected, next *Reading[E], reason error) {
	h.mu.Lock()
	replaced := h.current
	if expected != nil && replaced != expected {
		h.mu.Unlock()
		return
	}
	h.current, h.withdrawnBecause = next, reason
	h.mu.Unlock()
	if replaced != nil {
		replaced.Release()
	}
}
