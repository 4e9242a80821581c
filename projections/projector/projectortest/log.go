// Package projectortest gives tests and benchmarks of read models a log with events in it. It uses only what the program
// itself uses: the journal, the codec and the projector.
//
// A test calls Start, appends with Fixture.Append or Fixture.Sync, and reads with Rows, which waits for the appended events.
// Tests of the projector itself take the parts: OpenJournal, Vault, AppendAccounts, and RestorableLog, whose contents can be
// replaced by those of a backup.
package projectortest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/journal"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

// OpenJournal opens a new journal in a folder of its own. It is closed and deleted after the test.
func OpenJournal(t testing.TB) *journal.Journal {
	t.Helper()
	j, err := journal.Open(t.TempDir(), journal.Options{SegmentSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

// Vault gives every subject a key derived from its name, so that all processes share the keys. Destroying a key affects only
// this process. The zero Vault is ready, and safe for concurrent use.
type Vault struct{ destroyed sync.Map }

// Key implements eventstore.Vault.
func (v *Vault) Key(_ context.Context, subject string, _ bool) ([]byte, error) {
	if _, isDestroyed := v.destroyed.Load(subject); isDestroyed {
		return nil, eventstore.ErrDestroyed
	}
	key := sha256.Sum256([]byte(subject))
	return key[:], nil
}

// DestroyKey implements eventstore.Vault. From then on Key fails with eventstore.ErrDestroyed.
func (v *Vault) DestroyKey(_ context.Context, subject string) error {
	v.destroyed.Store(subject, true)
	return nil
}

// ForgetKeys implements eventstore.Vault: nothing is kept.
func (*Vault) ForgetKeys() {}

// Actor and Reason are in the metadata of every event that is appended here.
const (
	Actor  = "token:t1"
	Reason = "because"
)

// Append appends events to a stream in one append, and returns its position. It accepts any revision of the stream, and
// encrypts personal fields with the codec.
func Append(t testing.TB, log eventstore.Store, codec *eventstore.Codec, stream string, events ...event.Event) eventstore.Position {
	t.Helper()
	meta := eventstore.Metadata{Actor: Actor, Reason: Reason, CorrelationID: uuid.NewString()}
	batch, err := codec.Encode(t.Context(), stream, uuid.New(), meta, events)
	if err != nil {
		t.Fatal(err)
	}
	done, err := log.Append(t.Context(), stream, eventstore.Any, batch)
	if err != nil {
		t.Fatal(err)
	}
	return done.Position
}

// AccountEvents returns the events of one account: ten events in four appends, of most of the types that accounts have. The
// seed distinguishes accounts; the same seed gives the same account, except for the random token of its publishable key.
func AccountEvents(seed int) (stream string, appends [][]event.Event) {
	id := fmt.Sprintf("a%06d", seed)
	key := func(n int) string { return fmt.Sprintf("%s-k%d", id, n) }
	hash := token.HashOf(id)
	effective := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	secret := func(n int) event.Event {
		return event.SecretKeyIssued{Key: key(n), Label: "server", Hash: hash[:], Hint: "ld_sk_…abcd"}
	}
	return "account-" + id, [][]event.Event{
		{
			event.AccountOpened{Account: id, Name: event.Personal("Société " + id), Plan: plan.Starter, Quota: 100_000, Anchor: plan.Date{Year: 2026, Month: 11, Day: 21}},
			secret(1),
		},
		{
			event.PublishableKeyIssued{Key: key(2), Label: "site", Hash: hash[:], Hint: "ld_pk_…efgh", Token: token.DefaultPrefixes.New(token.Publishable), Origins: []string{"https://" + id + ".example.fr"}},
			event.KeyOriginsChanged{Key: key(2), Hash: hash[:], Before: []string{"https://" + id + ".example.fr"}, Origins: []string{"https://*." + id + ".example.fr"}},
		},
		{
			event.PlanChanged{From: plan.Starter, To: plan.Growth, Quota: 500_000, Effective: effective.AddDate(-1, 0, 0)},
			secret(3),
			event.KeyRevoked{Key: key(1), Hint: "ld_sk_…abcd", Hash: hash[:]},
			event.PlanChanged{From: plan.Growth, To: plan.Starter, Quota: 100_000, Effective: effective.AddDate(100, 0, 0)},
		},
		{
			event.AgencyActivated{},
			event.AccountActionRefused{Action: "change-origins", Code: "origine_invalide"},
		},
	}
}

// EventsPerAccount is how many events AccountEvents returns.
const EventsPerAccount = 10

// AppendAccounts appends the events of accounts, from many goroutines, so that they are interleaved in the log. It returns
// the last position.
func AppendAccounts(t testing.TB, log eventstore.Store, codec *eventstore.Codec, accounts int) eventstore.Position {
	t.Helper()
	return AppendAccountRange(t, log, codec, 0, accounts)
}

// AppendAccountRange is AppendAccounts for the seeds from first to end, exclusive.
func AppendAccountRange(t testing.TB, log eventstore.Store, codec *eventstore.Codec, first, end int) eventstore.Position {
	t.Helper()
	var last atomic.Uint64
	var writers sync.WaitGroup
	for w := range concurrentWriters {
		writers.Go(func() {
			for seed := first + w; seed < end; seed += concurrentWriters {
				stream, appends := AccountEvents(seed)
				for _, events := range appends {
					at := uint64(Append(t, log, codec, stream, events...))
					for was := last.Load(); was < at && !last.CompareAndSwap(was, at); was = last.Load() {
					}
				}
			}
		})
	}
	writers.Wait()
	return eventstore.Position(last.Load())
}

// concurrentWriters is how many goroutines append: enough for appends to share a flush of the journal.
const concurrentWriters = 64

// RestorableLog is a log that can be replaced by an older copy of it while it is in use: a subscription continues on the new
// log, as with a server that was restarted with a backup. It is safe for concurrent use, except for Backup and Restore.
type RestorableLog struct {
	dir string // of the log that is in use

	mu  sync.Mutex
	log *journal.Journal
}

// NewRestorableLog opens a new log, which is closed after the test. Several projectors may use it at once, as several
// instances use one server.
func NewRestorableLog(t testing.TB) *RestorableLog {
	t.Helper()
	r := &RestorableLog{dir: t.TempDir()}
	r.openJournal(t)
	t.Cleanup(func() { r.current().Close() })
	return r
}

// openJournal opens the log in dir.
func (r *RestorableLog) openJournal(t testing.TB) {
	t.Helper()
	j, err := journal.Open(r.dir, journal.Options{SegmentSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = j
}

// current is the log that is in use.
func (r *RestorableLog) current() *journal.Journal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log
}

// Backup copies the log as it is now into a folder for Restore. Nothing may be appended meanwhile. The folder is deleted
// after the test.
func (r *RestorableLog) Backup(t testing.TB) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(r.dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// Restore replaces the log by a backup, to which appendMore then appends. Subscriptions continue with the backup only after
// appendMore has returned, so that they find those events on it.
func (r *RestorableLog) Restore(t testing.TB, backup string, appendMore func()) {
	t.Helper()
	old := r.current()
	r.dir = backup
	j, err := journal.Open(backup, journal.Options{SegmentSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	r.log = j
	r.mu.Unlock()
	appendMore()
	if err := old.Close(); err != nil { // only now do its readers look for the other log
		t.Fatal(err)
	}
}

// Identity and the methods below implement eventstore.Store on the current log.
func (r *RestorableLog) Identity(ctx context.Context) (uuid.UUID, error) {
	return r.current().Identity(ctx)
}

func (r *RestorableLog) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	return r.current().Append(ctx, stream, expected, events)
}

func (r *RestorableLog) ReadStream(ctx context.Context, stream string, from eventstore.Revision, dir eventstore.Direction) iter.Seq2[eventstore.RecordedEvent, error] {
	return r.current().ReadStream(ctx, stream, from, dir)
}

func (r *RestorableLog) ReadAll(ctx context.Context, after eventstore.Checkpoint, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return r.current().ReadAll(ctx, after, want)
}

// Subscribe follows the current log, and then the one that replaces it.
func (r *RestorableLog) Subscribe(ctx context.Context, after eventstore.Checkpoint, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		for log := r.current(); ; log = r.current() {
			for s, err := range log.Subscribe(ctx, after, want) {
				if errors.Is(err, eventstore.ErrClosed) && r.current() != log {
					break
				}
				if !yield(s, err) || err != nil {
					return
				}
				after = s.Checkpoint
			}
		}
	}
}

func (r *RestorableLog) Health() error { return r.current().Health() }

func (r *RestorableLog) Close() error { return r.current().Close() }
