package scale

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"lieudit/cmd/bench/harness"
	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

// concurrentAppends is how many appends are under way at once. They share syncs of the disk.
const concurrentAppends = 512

// generateLog writes the accounts and their keys to the node's journal, which no process has open. An account is one append: its opening
// and all its keys. Names and labels are empty: to read them the instances would need a data key of each account in their vaults.
func (r *run) generateLog(ctx context.Context) (err error) {
	j, err := journal.Open(r.Path(nodeName), journal.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	codec := eventstore.NewCodec(nil) // there are no personal texts
	r.tokens = make([]string, r.Accounts)
	var done atomic.Int64
	var work errgroup.Group
	work.SetLimit(concurrentAppends)
	for n := range r.Accounts {
		work.Go(func() error {
			stream, events := r.accountEvents(n)
			proposed, err := codec.Encode(ctx, stream, uuid.New(), eventstore.Metadata{Actor: eventstore.SystemActor}, events)
			if err == nil {
				_, err = j.Append(ctx, stream, eventstore.NoStream, proposed)
			}
			r.reportProgress(int(done.Add(1)))
			return err
		})
	}
	return work.Wait()
}

// reportProgress shows every thousandth account that was written.
func (r *run) reportProgress(written int) {
	if written%1000 == 0 {
		r.Progress("accounts on the log", written, r.Accounts)
	}
}

// accountEvents makes the stream of the n-th account, and keeps the token of its last key. The keys are spread evenly.
func (r *run) accountEvents(n int) (stream string, events []event.Event) {
	id := fmt.Sprintf("account-of-scale-%d", n)
	events = append(events, event.AccountOpened{
		Account: id, Plan: plan.Business, Quota: harness.UnlimitedQuota, Anchor: plan.Date{Year: 2026, Month: 1, Day: 1 + n%28},
	})
	for range (n+1)*r.Keys/r.Accounts - n*r.Keys/r.Accounts {
		text := token.DefaultPrefixes.New(token.Secret)
		hash := token.HashOf(text)
		events = append(events, event.SecretKeyIssued{Key: uuid.NewString(), Hash: hash[:], Hint: token.DefaultPrefixes.Hint(text)})
		r.tokens[n] = text
	}
	return "account-" + id, events
}
