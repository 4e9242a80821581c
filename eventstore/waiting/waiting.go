// Package waiting bounds the wait for a log that is slow and not lost: how long a request waits, how many do, and how
// many of them one account may have. Who waits enters the instance's one Room (Enter), whatever part of the log it
// waits for, and leaves it when the log has answered, when its time is over or when its client goes away.
package waiting

import (
	"context"
	"errors"
	"sync"
	"time"

	"lieudit/eventstore"
)

const (
	// Staleness is how old the last successful look at the log may be of which something is answered.
	Staleness = time.Second
	// Longest is how long a request waits from its arrival, over all that it waits for.
	Longest = 3 * time.Second
	// Lost is the silence of a log after which nobody waits for it any more.
	Lost = 10 * time.Second
	// Brief is a wait that is no stall: it takes no place.
	Brief = 100 * time.Millisecond
	// Places is how many requests of an instance wait at a time. One account gets half of them.
	Places = 4096
)

// Room holds who waits. It is safe for concurrent use.
type Room struct {
	places int

	mu    sync.Mutex
	taken int
	by    map[string]int // by account
}

// NewRoom is a room with so many places.
func NewRoom(places int) *Room { return &Room{places: places, by: map[string]int{}} }

// Enter takes a place for a request of an account, if there is one. leave gives it back; more than once is fine.
func (r *Room) Enter(account string) (leave func(), ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken >= r.places || r.by[account] >= r.places/2 {
		return nil, false
	}
	r.taken++
	r.by[account]++
	return sync.OnceFunc(func() { r.leave(account) }), true
}

func (r *Room) leave(account string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken--
	if r.by[account]--; r.by[account] == 0 {
		delete(r.by, account)
	}
}

// Taken is how many places are taken.
func (r *Room) Taken() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taken
}

// Wait does what asks the log for an account's sake, with a place, for as long as a request may wait, and again where
// the log was away for a moment. Without a place it has only a moment.
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
