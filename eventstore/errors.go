package eventstore

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrUnknown: the events of an append may or may not have been added. Sending the very same append again settles it.
	ErrUnknown = errors.New("outcome of the append is unknown")
	// ErrUnavailable: the log cannot be reached or cannot write; nothing was added.
	ErrUnavailable = errors.New("event log unavailable")
	// ErrTooLarge: the append is over MaxAppendBytes; nothing was added.
	ErrTooLarge = errors.New("append too large")
	// ErrIDReused: an event id was already used in another append; nothing was added.
	ErrIDReused = errors.New("event id already used in another append")
	// ErrStopped: the log cannot write until it is opened again. It comes with ErrUnknown or ErrUnavailable; an unknown
	// outcome then stays unknown, however often the append is sent.
	ErrStopped = errors.New("the log stopped writing")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("event log closed")
	// ErrConflict matches every *ConflictError.
	ErrConflict = errors.New("stream is not at the expected revision")
)

// ConflictError: the stream is not at the revision that the append expects; nothing was added. Current is NoStream when the
// stream holds no event.
type ConflictError struct {
	Stream            string
	Expected, Current Revision
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("stream %s: expected revision %d, found %d", e.Stream, e.Expected, e.Current)
}

// Is makes errors.Is(err, ErrConflict) true.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// DivergedError: a checkpoint is not on the log that is read. It is another log, or an older copy was restored. A reader that
// continued would skip events.
type DivergedError struct {
	Checkpoint Checkpoint
	Reason     string
	IsOtherLog bool // the checkpoint belongs to a log with another identity; otherwise to this one before a copy was restored
}

func (e *DivergedError) Error() string {
	return fmt.Sprintf("the log is not the one position %d was read from: %s", e.Checkpoint.Position, e.Reason)
}

// UnusableError: an event is intact on the log, but it cannot be decoded as its type, or it commits events that are not
// staged. Reading it again does not help. It stops only the account whose stream it is in.
type UnusableError struct {
	Stream   string
	Revision Revision
	Position Position
	Err      error
}

func (e *UnusableError) Error() string {
	return fmt.Sprintf("%s@%d cannot be used: %v", e.Stream, e.Revision, e.Err)
}

func (e *UnusableError) Unwrap() error { return e.Err }

// UnreadableError: the key of a sealed personal text is missing or does not open it, and the log does not record its erasure.
// It stops only the account that the text belongs to, until the vault opens the text. Until then nothing may be shown or
// written in its place.
type UnreadableError struct {
	Subject string
	Err     error
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("personal fields of %s cannot be read: %v", e.Subject, e.Err)
}

func (e *UnreadableError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrUnreadable) true.
func (e *UnreadableError) Is(target error) bool { return target == ErrUnreadable }

// CorruptError: the log's bytes at Position are not the ones that were written.
type CorruptError struct {
	Position Position
	Reason   string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("log damaged at position %d: %s", e.Position, e.Reason)
}

// StallError: the log has not answered for Duration but is not considered lost yet. It may answer in a moment.
type StallError struct {
	Duration time.Duration
	Err      error // the cause if it is known; may be nil
}

func (e *StallError) Error() string {
	text := fmt.Sprintf("the event log stalls: no good answer for %v", e.Duration.Round(100*time.Millisecond))
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *StallError) Unwrap() error { return e.Err }
