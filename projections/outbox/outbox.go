// Package outbox tells a search engine outside of the sites that changed, from the rows that the places read model leaves
// in its outbox in the transaction of the change. What was told is deleted only where it did not change meanwhile, so
// nothing is missed and anything may be told twice. Its one constraint: one instance at a time tells.
package outbox

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"lieudit/projections/projector"
	"lieudit/schemas/table"
)

// Batch is what an index is told at once.
type Batch struct {
	Fill     string       // what the sites are from; those of another fill are to go in the end
	Position int64        // as far as the index has been told when it has been told this
	Sites    []table.Site // as they stand
	Gone     []string     // keys of sites that are no more, and accounts with a slash after them
}

// Told is how far an index was told, by what it knows itself.
type Told struct {
	Fill     string
	Position int64
	Sites    int // of that fill
}

// Index is a search engine outside. What Tell and Seal did can be found when they return.
type Index interface {
	// Open makes the index ready, as a new one where it is not there, and says what it was told before.
	Open(ctx context.Context) (Told, error)
	// Tell fails with ErrRefused where something of the batch cannot be taken, and with ErrLost where the index is not
	// the one that was opened. A batch that failed may have been taken all the same.
	Tell(ctx context.Context, b Batch) error
	// Seal notes that all of a fill was told up to a position; what is of others is dropped. There are no sites in b.
	Seal(ctx context.Context, b Batch) error
}

var (
	// ErrRefused: the index cannot take what it was told, however often.
	ErrRefused = errors.New("refused")
	// ErrLost: the index is gone, or another one is in its place.
	ErrLost = errors.New("the index is not the one that was filled")
)

// Outbox empties the outbox of the places read model into an index. It is safe for concurrent use.
type Outbox struct {
	Log *slog.Logger // one line when the index cannot be told and when it can again; slog.Default() unless set before use

	index Index
	shelf *table.Shelf

	mu     sync.Mutex
	reason string // why the index cannot be told by this instance, "" when it can or another instance does
	stuck  int64  // the oldest position somebody waited for in vain
}

// New is the outbox of the places on a shelf. Nothing happens before Run.
func New(index Index, shelf *table.Shelf) *Outbox {
	return &Outbox{Log: slog.Default(), index: index, shelf: shelf}
}

const (
	firstPause = 250 * time.Millisecond
	longest    = 15 * time.Second // pause between two attempts
)

// Run tells the index what is in the outbox of a copy, until ctx ends: it is what the places model has done Beside it.
func (o *Outbox) Run(ctx context.Context, own projector.Owned) {
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, longest) {
		d := &drain{Outbox: o, own: own, fill: fillOf(own.Copy), aside: map[string]trial{}}
		began := time.Now()
		err := d.run(ctx)
		o.halted(ctx, err)
		if time.Since(began) > longest || errors.Is(err, ErrLost) {
			pause = firstPause
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reason = "" // another instance tells it now, or none at all
}

// fillOf names what a copy fills an index with, as no other copy ever did.
func fillOf(c table.Copy) string {
	return c.Name + "@" + c.Made.Time().Format("20060102T150405.000000")
}

// halted notes why the index cannot be told.
func (o *Outbox) halted(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.reason == "" {
		o.Log.Warn("site search cannot be told of changes", "reason", err)
	}
	o.reason = err.Error()
}

// resumed notes that it can.
func (o *Outbox) resumed() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.reason != "" {
		o.Log.Info("site search is told of changes again")
	}
	o.reason = ""
}

func (o *Outbox) halt() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.reason
}
