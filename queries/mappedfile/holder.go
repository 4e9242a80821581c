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
	// Damage is why the file must not be read any more, nil while it may be.
	Damage() error
	Close() error
}

// Holder holds the file that is served, or none, with what answers from it: its engine, an E. Swap replaces both at any time
// without stopping queries. The old file is closed when its last reader is done, never before: a read of an unmapped file ends
// the process. The zero Holder holds none. It is safe for concurrent use.
type Holder[E any] struct {
	// AbsenceError makes the error of a query when no file is served. The reason is that of a Withdraw, or the damage; nil when
	// there is none. Where it is nil, the errors are ErrNone and *WithdrawnError. It is set before the first query.
	AbsenceError func(reason error) error

	mu               sync.Mutex
	current          *Reading[E]
	withdrawnBecause error // why no file is served; nil when none was ever served
}

// Reading is one use of a file and its engine. Release ends it.
type Reading[E any] struct {
	Engine  E
	file    Guarded
	owner   *Holder[E]
	readers int // the holder counts as one while it serves the file
}

// ErrNone says that no file is served.
var ErrNone = errors.New("none is served")

// WithdrawnError says that there is a file and why it is not served. It matches ErrNone.
type WithdrawnError struct{ Reason error }

func (e *WithdrawnError) Error() string { return fmt.Sprintf("%v: %v", ErrNone, e.Reason) }

func (e *WithdrawnError) Unwrap() []error { return []error{ErrNone, e.Reason} }

// Query runs a query on the served file's engine. It fails with ErrNone when there is none, and with a *WithdrawnError when there is
// one that is not served; with what AbsenceError makes where the holder has one. A file that proves to be damaged during the
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

// Acquire begins a use of the served file; false says that there is none. Queries go through Query: only it notices damage.
func (h *Holder[E]) Acquire() (*Reading[E], bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current == nil || h.current.file.Damage() != nil {
		return nil, false
	}
	h.current.readers++
	return h.current, true
}

// absenceReason is why no file is served, nil when none was ever served.
func (h *Holder[E]) absenceReason() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current != nil && h.current.file.Damage() != nil {
		return h.current.file.Damage()
	}
	return h.withdrawnBecause
}

// newAbsenceError makes the error of a query that finds no file to read.
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
		r.file.Close() // a failure to unmap leaves nothing to do
	}
}

// Swap serves a file and its engine from now on. It owns the file, which is closed after a later Swap or Withdraw.
func (h *Holder[E]) Swap(file Guarded, engine E) {
	h.replace(nil, &Reading[E]{Engine: engine, file: file, owner: h, readers: 1}, nil)
}

// Withdraw stops serving. Queries fail with a *WithdrawnError for that reason until the next Swap; with ErrNone when it is nil.
func (h *Holder[E]) Withdraw(reason error) { h.replace(nil, nil, reason) }

// withdraw stops serving a file that a reader found damaged, unless it was replaced meanwhile.
func (h *Holder[E]) withdraw(r *Reading[E], reason error) { h.replace(r, nil, reason) }

// replace serves next in place of what is served; where expected is not nil, only in place of that.
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
