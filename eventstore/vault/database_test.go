package vault_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/eventstore/vault"
	"lieudit/schemas/table"
)

// leaseTime is how long an instance's lease on the vault lasts.
const leaseTime = 10 * time.Second

// readLeases reads how many leases there are, and the latest end of them.
func (f *fixture) readLeases(t *testing.T) (n int, latest table.Instant) {
	t.Helper()
	db := f.openDatabase(t)
	defer db.Close()
	if err := db.QueryRow(t.Context(), "select count(*), coalesce(max(until), 0) from {lease}").Scan(&n, &latest); err != nil {
		t.Fatal(err)
	}
	return n, latest
}

// Both need a vault that nobody uses. One that they find in use by an instance that died stays in use for as long as a lease
// lasts, and not for the hours that the database's clock was set back.
func TestALeaseOfBeforeTheClockWasSetBackBlocksForAMomentOnly(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(t *testing.T, address string) error{
		"rewrap": func(t *testing.T, address string) error {
			_, err := vault.Rewrap(t.Context(), address, nil, masterKey(1))
			return err
		},
		"copy": func(t *testing.T, address string) error {
			empty := newFixture(t, t.TempDir())
			empty.startChecked(t).close()
			_, err := vault.Copy(t.Context(), sqldbtest.DatabaseAddress(empty.address), address)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, sqldbtest.NewPostgresDatabase(t))
			f.startChecked(t).close()
			f.execStatements(t, "insert into {lease} (instance, until) values ('dead', "+
				"(extract(epoch from clock_timestamp() + interval '5 hours') * 1000000)::bigint)")
			if err := run(t, f.address); !errors.Is(err, vault.ErrInUse) {
				t.Errorf("got %v, want ErrInUse: its holder may be alive", err)
			}
			f.execStatements(t, "update {lease} set until = until - 10000000") // as if the time of a lease had passed
			if err := run(t, f.address); err != nil {
				t.Errorf("a lease later: %v", err)
			}
		})
	}
}

func TestAnInstanceShortensLeasesThatEndLaterThanAnyCan(t *testing.T) {
	t.Parallel()
	f := newFixture(t, sqldbtest.NewPostgresDatabase(t))
	var now atomic.Int64 // seconds of the database's clock
	now.Store(1_900_000_000)
	start := func() *vault.Bound {
		v, err := vault.New(f.address, nil, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		v.Simulated = sqldb.Simulated{Clock: func() time.Time { return time.Unix(now.Load(), 0) }}
		return vault.Bind(v, f.log, testLogger(t))
	}
	dead, living := start(), start()
	defer living.Close()
	if err := dead.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		state        string
		clockChanges time.Duration
		wantLeases   int
	}{
		{"both have one", 0, 2},
		{"the clock is set back by hours", -5 * time.Hour, 2},
		{"a moment later", leaseTime / 2, 2},
		{"the dead one's time is over", leaseTime/2 + time.Second, 1},
		{"the clock is set forth by hours", 5 * time.Hour, 1},
	} {
		now.Add(int64(step.clockChanges / time.Second))
		if err := living.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		n, latest := f.readLeases(t)
		if want := table.InstantOf(time.Unix(now.Load(), 0).Add(leaseTime)); n != step.wantLeases || latest != want {
			t.Errorf("%s: %d leases until %d, want %d until %d", step.state, n, latest, step.wantLeases, want)
		}
	}
	if err := dead.Close(); err != nil {
		t.Error(err)
	}
}
