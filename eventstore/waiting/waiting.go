// Package waiting limits how requests wait for a log that does not answer for a moment: for how long, how many at a time,
// and how many of one account. Its constraint: an instance has one Room for all its requests, so that one account cannot
// take all the places, whatever part of the service it waits in.
//
//	request ──> Room.Wait: Enter ──> ask (the call on the log), repeated while it is unavailable ──> leave
//
// A caller that waits in another way calls Enter itself.
package waiting

import (
	"context"
	"errors"
	"sync"
	"time"

	"lieudit/eventstore"
)

const (
	// Staleness is how old a reading of the log may be that an answer relies on.
	Staleness = time.Second
	// Longest is how long one request waits in all, counted from its arrival.
	Longest = 3 * time.Second
	// Lost is how long the log is silent until requests stop waiting for it.
	Lost = 10 * time.Second
	// Brief is how long a request may wait without a place.
	Brief = 100 * time.Millisecond
	// Places is how many requests of an instance wait at a time. One account may take half of them.
	Places = 4096
)

// Room counts the requests that wait. It is safe for concurrent use.
type Room struct {
	places int

	mu      sync.Mutex
	taken   int
	takenBy map[string]int // by account
}

// NewRoom returns a room with that many places.
func NewRoom(places int) *Room { return &Room{places: places, takenBy: map[string]int{}} }

// Enter takes a place for a request of an account; ok is false where none is free. leave gives the place back, and may be
// called more than once.
func (r *Room) Enter(account string) (leave func(), ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken >= r.places || r.takenBy[account] >= r.places/2 {
		return nil, false
	}
	r.taken++
	r.takenBy[account]++
	return sync.OnceFunc(func() { r.leave(account) }), true
}

func (r *Room) leave(account string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken--
	if r.takenBy[account]--; r.takenBy[account] == 0 {
		delete(r.takenBy, account)
	}
}

// Taken returns how many places are taken.
func (r *Room) Taken() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taken
}

// Wait calls ask, which reads the log for an account, and calls it again while it fails with eventstore.ErrUnavailable.
// It returns the last error of ask after Longest, or after Brief where the room has no free place.
func (r *Room) Wait(ctx context.Context, account string, ask func(context.Context) error) error {
	limit := Brief
	if leave, ok := r.Enter(account); ok {
		defer leave()
		limit = Longest
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := ask(ctx)
		if !errors.Is(err, eventstore.ErrUnavailable) {
			return err
		}
		again := time.NewTimer(limit / 60)
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return err
		}
	}
}
