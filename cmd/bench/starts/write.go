package starts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"lieudit/cmd/bench/harness"
	"lieudit/commands/account"
	"lieudit/commands/usage"
	"lieudit/eventstore"
	"lieudit/eventstore/clock"
	"lieudit/eventstore/waitlimit"
	"lieudit/schemas/event"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
	"lieudit/schemas/usagefold"
)

// countedAccount is an account and how many of its requests are on the log.
type countedAccount struct {
	harness.Account
	period   plan.Period
	usedKey  event.UsedKey
	requests int64
}

// daysBefore is how many days before today all periods begin: as many as every month has, so that they are running.
const daysBefore = 27

// logWriter writes accounts and requests to the logs of a service that does not run.
type logWriter struct {
	*run
	core, usage eventstore.Store // may be the same
	codec       *eventstore.Codec
	now         time.Time
}

// writeLog writes the accounts, and then the requests: the first of each account by the service's own meter, which opens their periods, and
// the others likewise, or as ticks of a chosen size.
func (w *logWriter) writeLog(ctx context.Context) error {
	w.codec = eventstore.NewCodec(nil)
	if w.Form == OwnStreams {
		w.codec = w.codec.WithFormat(func(_ context.Context, format int) (bool, error) { return format < event.SharedUsageFormat, nil })
	}
	if err := w.openAccounts(ctx); err != nil {
		return fmt.Errorf("the accounts: %w", err)
	}
	byMeter := min(w.Requests, len(w.accounts))
	if w.Form == OwnStreams {
		byMeter = w.Requests
	}
	if err := w.countRequests(ctx, byMeter); err != nil {
		return fmt.Errorf("the first requests: %w", err)
	}
	if err := w.writeTicks(ctx, w.Requests-byMeter); err != nil {
		return fmt.Errorf("the ticks: %w", err)
	}
	return nil
}

// openAccounts opens the accounts with one key each. Their periods all began daysBefore days ago.
func (w *logWriter) openAccounts(ctx context.Context) error {
	anchor := plan.DateOf(w.now.AddDate(0, 0, -daysBefore))
	opened, err := harness.AppendAccounts(ctx, w.core, harness.AccountOptions{
		Accounts: w.Accounts, Keys: w.Accounts, IDPrefix: "account-of-starts-",
		Anchor:  func(int) plan.Date { return anchor },
		Written: func(n int) { w.reportProgress("accounts on the log", n, w.Accounts) },
	})
	for _, a := range opened {
		period := plan.PeriodAt(a.Anchor, w.now)
		w.accounts = append(w.accounts, &countedAccount{Account: a, period: period, usedKey: event.UsedKey{
			PeriodRef: event.PeriodRef{Contract: a.ID, First: period.First}, Account: a.ID, Key: a.Key,
		}})
	}
	return err
}

// meterClients is how many requests are counted at once by the meter.
const meterClients = 512

// countRequests counts requests of all accounts in turn by a meter as an instance has one.
func (w *logWriter) countRequests(ctx context.Context, requests int) error {
	limiter := waitlimit.New(waitlimit.MaxRequests)
	log := slog.New(slog.DiscardHandler)
	quotas := account.New(w.core, w.codec, token.DefaultPrefixes, time.Now)
	unchanged := func(string, time.Time) (grant.Terms, bool) { return grant.Terms{}, false }
	m := usage.New(w.usage, w.codec, quotas, unchanged, limiter, clock.New(clock.Options{Log: log}), log)
	m.Shards = int64(w.Shards)
	running, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.Run(running, w.core, eventstore.Checkpoint{})
	}()
	defer func() {
		stop()
		<-ended
		events, _ := m.Totals()
		w.ticks += int(events)
	}()
	var clients errgroup.Group
	clients.SetLimit(meterClients)
	for n := range requests {
		a := w.accounts[n%len(w.accounts)]
		a.requests++
		w.reportProgress("requests on the log", n+1, w.Requests)
		clients.Go(func() error {
			g := grant.Grant{KeyID: a.Key, Kind: token.Secret, Account: a.ID, Terms: grant.Terms{Plan: plan.Business, Quota: harness.UnlimitedQuota, Anchor: a.Anchor}}
			c, err := m.Charge(ctx, limiter.NewWait(a.ID), g, endpoints[n/len(w.accounts)%len(endpoints)], 1)
			if err != nil {
				return err
			}
			return m.Settle(ctx, c, 0)
		})
	}
	return clients.Wait()
}

// writeTicks writes requests in ticks of as many as the options say, spread over the days of the periods so far.
func (w *logWriter) writeTicks(ctx context.Context, requests int) error {
	if requests == 0 {
		return nil
	}
	instanceID := uuid.New()
	if err := w.appendInstanceEvent(ctx, instanceID, event.InstanceStarted{InstanceID: instanceID.String()}); err != nil {
		return err
	}
	streams, err := w.openStreams(ctx, instanceID)
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(1, 2))
	first := w.accounts[0].period.First
	days := daysBefore + 1
	for written := 0; written < requests; {
		day := plan.DateOf(first.Start().AddDate(0, 0, written*days/requests).Add(12 * time.Hour)) // noon: no change of the hour matters
		n := min(w.RequestsPerTick, requests-written)
		// A stream with more accounts has more requests.
		s := streams[usagefold.ShardOf(w.accounts[random.IntN(len(w.accounts))].ID, int64(w.Shards))]
		if err := s.writeTick(ctx, random, day, n); err != nil {
			return err
		}
		written += n
		w.ticks++
		w.reportProgress("requests on the log", w.Requests-requests+written, w.Requests)
	}
	for _, s := range streams {
		err = errors.Join(err, s.flush(ctx))
	}
	return errors.Join(err, w.appendInstanceEvent(ctx, instanceID, event.InstanceEnded{InstanceID: instanceID.String()}))
}

// openStreams returns writers for the streams that the meter has opened, by shard.
func (w *logWriter) openStreams(ctx context.Context, instanceID uuid.UUID) (map[int64]*tickWriter, error) {
	streams := map[int64]*tickWriter{}
	sequence := new(int64)
	for _, a := range w.accounts {
		shard := usagefold.ShardOf(a.ID, int64(w.Shards))
		if streams[shard] == nil {
			streams[shard] = &tickWriter{
				log: w.usage, codec: w.codec, instanceID: instanceID, sequence: sequence,
				stream: usagefold.SharedStreamName(usagefold.MonthOf(a.period.First), shard),
			}
		}
		streams[shard].accounts = append(streams[shard].accounts, a)
	}
	for _, s := range streams {
		if err := s.readStream(ctx); err != nil {
			return nil, err
		}
	}
	return streams, nil
}

// appendInstanceEvent records that the instance that writes the ticks starts or has ended.
func (w *logWriter) appendInstanceEvent(ctx context.Context, instanceID uuid.UUID, e event.Event) error {
	stream := "incarnation-" + instanceID.String()
	proposed, err := w.codec.Encode(ctx, stream, uuid.New(), eventstore.Metadata{Actor: eventstore.SystemActor}, []event.Event{e})
	if err == nil {
		_, err = w.usage.Append(ctx, stream, eventstore.Any, proposed)
	}
	return err
}

// reportProgress shows some of the steps.
func (r *run) reportProgress(what string, done, total int) {
	if done%1000 == 0 {
		r.Progress(what, done, total)
	}
}
