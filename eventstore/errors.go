package eventstore

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrUnknown: an append may or may not have been made. The very same batch sent again settles it.
	ErrUnknown = errors.New("outcome of the append is unknown")
	// ErrUnavailable: the log cannot be reached or cannot write; nothing was added.
	ErrUnavailable = errors.New("event log unavailable")
	// ErrTooLarge: the append is over MaxAppend; nothing was added.
	ErrTooLarge = errors.New("append too large")
	// ErrIDReused: an event id was used before, in another batch; nothing was added.
	ErrIDReused = errors.New("event id already used in another append")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("event log closed")
	// ErrConflict is what every *ConflictError is.
	ErrConflict = errors.New("stream is not at the expected revision")
)

// ConflictError says that a stream was not where the append expected it; nothing was added. Current
// is NoStream when the stream holds nothing.
type ConflictError struct {
	Stream            string
	Expected, Current Revision
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("stream %s: expected revision %d, found %d", e.Stream, e.Expected, e.Current)
}

// Is makes errors.Is(err, ErrConflict) true.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// DivergedError says that a mark does not stand in the log it is read from: another log, or a copy that is older
// than the mark. Going on would skip events, so nothing does.
type DivergedError struct {
	Checkpoint Checkpoint
	Reason     string
	IsOtherLog bool // the mark is of a log with another identity; else of this one, as it was before a copy was restored
}

func (e *DivergedError) Error() string {
	return fmt.Sprintf("the log is not the one position %d was read from: %s", e.Checkpoint.Position, e.Reason)
}

// UnusableError: an event stands on the log whole and is not what its type says. It cannot be decoded, or it commits what
// is not staged. Reading it again changes nothing. It stops the account whose stream it is in, and no other.
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

// UnreadableError: a personal field was sealed with a key that is not at hand, or does not open it, and the log holds no
// erasure of it. It stops the account whose field it is until the vault opens it, and no other; until then nothing may be shown or
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

// CorruptError names the place where a log's bytes are not what was written.
type CorruptError struct {
	Position Position
	Reason   string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("log damaged at position %d: %s", e.Position, e.Reason)
}

// StallError says that a log has not answered for a while and is not taken for lost yet: it may answer in a moment.
type StallError struct {
	Duration time.Duration
	Err      error // what is known of the reason; may be nil
}

func (e *StallError) Error() string {
	text := fmt.Sprintf("the event log stalls: no good answer for %v", e.Duration.Round(100*time.Millisecond))
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *StallError) Unwrap() error { return e.Err }
