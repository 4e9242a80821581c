package sqldb_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/schemas/table"
)

// leaseTime is how long a lease lasts.
const leaseTime = 10 * time.Second

// movingClock is the clock of a database that is set forth and back by hand.
type movingClock struct{ at atomic.Int64 }

func newMovingClock() *movingClock {
	c := &movingClock{}
	c.at.Store(time.Date(2031, 10, 26, 2, 30, 0, 0, time.UTC).UnixMicro())
	return c
}

func (c *movingClock) now() time.Time       { return time.UnixMicro(c.at.Load()) }
func (c *movingClock) move(d time.Duration) { c.at.Add(d.Microseconds()) }

// openInstance opens the registry of an instance whose database has the clock. The address is that of all instances.
func openInstance(t *testing.T, address string, c *movingClock, id string) *sqldb.Registry {
	t.Helper()
	s := openRegistry(t, address)
	s.InstanceID, s.Program, s.Format, s.Simulated = id, "v1", 1, sqldb.Simulated{Clock: c.now}
	return s
}

// takeLease makes an instance hold a lease on a generation until its registry is closed, with the test.
func takeLease(t *testing.T, s *sqldb.Registry, g sqldb.Generation) {
	t.Helper()
	if _, _, err := s.OpenGeneration(t.Context(), g); err != nil {
		t.Fatal(err)
	}
}

// runningIDs are the instances that are listed as running, by both lists, which must agree.
func runningIDs(t *testing.T, s *sqldb.Registry) (ids []string) {
	t.Helper()
	for _, i := range running(t, s) {
		ids = append(ids, i.ID)
	}
	active, err := s.ActiveInstances(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if !active[id] || len(active) != len(ids) {
			t.Errorf("running are %q, active %v", ids, active)
		}
	}
	return ids
}

// Where the clock was set by hours, a lease counts again for as long as a lease lasts, and no longer: not for the hours that the
// clock was set back.
func TestALeaseEndsAlthoughTheDatabasesClockIsSet(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]time.Duration{
		"not set": 0, "set back by hours": -5 * time.Hour, "set back by a second": -time.Second, "set forth by hours": 5 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
				c := newMovingClock()
				dead, living := openInstance(t, address, c, "dead"), openInstance(t, address, c, "living")
				old := buildServing(t, living, model(1), 1)
				takeLease(t, dead, old) // and never renewed
				buildServing(t, living, model(2), 1)
				c.move(set)

				if set < 0 {
					if got := prune(t, living, model(2)); len(got) > 0 {
						t.Errorf("dropped %q at once: its holder may be alive", got)
					}
				}
				c.move(leaseTime + time.Second)
				if got, want := prune(t, living, model(2)), []string{old.Name}; !slices.Equal(got, want) {
					t.Errorf("dropped %q a lease later, want %q", got, want)
				}
			})
		})
	}
}

func TestALeaseThatIsRenewedOutlivesAClockThatIsSetBack(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		c := newMovingClock()
		holder, other := openInstance(t, address, c, "holder"), openInstance(t, address, c, "other")
		old := buildServing(t, other, model(1), 1)
		takeLease(t, holder, old)
		buildServing(t, other, model(2), 1)
		for range 3 {
			c.move(-5 * time.Hour)
			if got := prune(t, other, model(2)); len(got) > 0 {
				t.Fatalf("dropped %q, which an instance uses", got)
			}
			renewLeases(t, holder)
			c.move(leaseTime / 2)
			if got := prune(t, other, model(2)); len(got) > 0 {
				t.Fatalf("dropped %q, which an instance uses and has renewed", got)
			}
		}
	})
}

// renewLeases writes an instance's leases anew, which Generations does when some seconds have passed.
func renewLeases(t *testing.T, s *sqldb.Registry) {
	t.Helper()
	if err := s.RenewLeasesNow(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestAnInstanceThatDiedIsNotListedForAsLongAsTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		c := newMovingClock()
		dead, living := openInstance(t, address, c, "dead"), openInstance(t, address, c, "living")
		g, err := living.BuildGeneration(t.Context(), model(1), true)
		if err != nil {
			t.Fatal(err)
		}
		takeLease(t, living, g)
		takeLease(t, dead, g)
		c.move(-5 * time.Hour)
		renewLeases(t, living)
		if got, want := runningIDs(t, living), []string{"dead", "living"}; !slices.Equal(got, want) {
			t.Errorf("running are %q, want %q: each may be alive", got, want)
		}
		c.move(leaseTime + time.Second)
		renewLeases(t, living)
		if got, want := runningIDs(t, living), []string{"living"}; !slices.Equal(got, want) {
			t.Errorf("running are %q a lease later, want %q", got, want)
		}
	})
}

func TestOnlyLeasesThatEndTooLateAreShortened(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		leases := table.Def{Name: "lease", KeyColumns: 1, Columns: []table.Column{
			{Name: "owner", Type: table.Text}, {Name: "until", Type: table.Timestamp},
		}}
		options := sqldb.Options{Schema: "leases", Simulated: sqldb.Simulated{Clock: newMovingClock().now}}
		db, err := sqldb.Open(t.Context(), sqldbtest.DatabaseAddress(address), options)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if err := db.Create(t.Context(), leases); err != nil {
			t.Fatal(err)
		}
		for _, tc := range []struct{ end, want time.Duration }{
			{-time.Hour, -time.Hour}, {0, 0}, {time.Second, time.Second}, {leaseTime, leaseTime},
			{leaseTime + time.Microsecond, leaseTime}, {time.Hour, leaseTime},
		} {
			err := db.RunInTx(t.Context(), func(tx *sqldb.Tx) error {
				if _, err := tx.Exec(t.Context(), "delete from {lease}"); err != nil {
					return err
				}
				insert := "insert into {lease} (owner, until) values ('a', " + db.Now() + " + ?)"
				if _, err := tx.Exec(t.Context(), insert, tc.end.Microseconds()); err != nil {
					return err
				}
				return tx.ShortenLeases(t.Context(), leases, leaseTime)
			})
			var got int64
			if err == nil {
				err = db.QueryRow(t.Context(), "select until - "+db.Now()+" from {lease}").Scan(&got)
			}
			if err != nil || got != tc.want.Microseconds() {
				t.Errorf("a lease that ends in %v ends in %v µs, %v; want %v", tc.end, got, err, tc.want)
			}
		}
	})
}
