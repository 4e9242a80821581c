package trial

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"lieudit/eventstore"
	"lieudit/eventstore/esdb"
	"lieudit/schemas/event"
	"lieudit/schemas/ledger"
)

// truth is what the log says.
type truth struct {
	counted      map[string]int64  // by key
	incarnations map[string]string // by key: who counted for it
	ended        map[string]bool   // incarnations that told their end
	most         int64             // that ever counted at once
	events       int64             // of usage
	ticks, void  int64             // and those ticks that do not count
	refunded     int64             // requests
}

// fold reads the whole log of a node, and says what it comes to.
func fold(ctx context.Context, socket string) (_ *truth, err error) {
	store, err := esdb.Open(ctx, "esdb+unix://"+socket, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	found := &truth{counted: map[string]int64{}, incarnations: map[string]string{}, ended: map[string]bool{}}
	books := map[string]*ledger.Folding{}
	for signal, err := range store.ReadAll(ctx, eventstore.Mark{}, eventstore.Filter{"usage", "incarnation"}) {
		if err != nil {
			return nil, fmt.Errorf("read the log: %w", err)
		}
		if signal.Kind != eventstore.Event {
			continue
		}
		e, err := event.Decode(signal.Event.Type, signal.Event.Data)
		if err != nil {
			return nil, err
		}
		found.take(books, signal.Event, e)
	}
	for _, b := range books {
		for at, n := range b.Lines {
			found.counted[at.Key] += n
		}
	}
	return found, nil
}

func (y *truth) take(books map[string]*ledger.Folding, r eventstore.Recorded, e event.Event) {
	switch e := e.(type) {
	case event.IncarnationStarted:
		return
	case event.IncarnationEnded:
		y.ended[e.Incarnation] = true
		return
	}
	b := books[r.Stream]
	if b == nil {
		b = ledger.NewFolding()
		books[r.Stream] = b
	}
	verdict := b.Apply(e, r.Time)
	y.events++
	y.most = max(y.most, b.Used(b.Contract))
	switch e := e.(type) {
	case event.UsageTicked:
		y.ticks++
		if verdict != ledger.Counts {
			y.void++
		}
		for _, c := range e.Counts {
			y.incarnations[c.Key] = e.Incarnation
		}
	case event.UsageRefunded:
		for _, c := range e.Counts {
			y.refunded += c.Requests
		}
	}
}
