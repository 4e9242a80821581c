package projector_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/eventstore"
	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/projections/account"
	"lieudit/projections/audit"
	"lieudit/projections/locations"
	"lieudit/projections/projector"
	"lieudit/projections/projector/projectortest"
	"lieudit/projections/usage"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

// cluster is one database and one log, with any number of instances on them.
type cluster struct {
	address string
	log     eventstore.Store
	codec   *eventstore.Codec
	vault   *projectortest.Vault
}

func newCluster(t *testing.T, address string) *cluster {
	v := &projectortest.Vault{}
	return &cluster{address, projectortest.OpenJournal(t), eventstore.NewCodec(v), v}
}

// instance is a running projector and the registry that it serves from.
type instance struct {
	*projector.Projector
	registry *sqldb.Registry
	stop     func()
}

func (s *cluster) startInstance(t *testing.T, models ...projector.Model) *instance {
	t.Helper()
	if len(models) == 0 {
		models = []projector.Model{account.Model, audit.Model}
	}
	registry, err := sqldb.OpenRegistry(s.address)
	if err != nil {
		t.Fatal(err)
	}
	return s.runProjector(t, projector.New(s.log, s.codec, registry, models...), registry)
}

// runProjector runs a projector until the test ends, or its instance is stopped.
func (s *cluster) runProjector(t *testing.T, p *projector.Projector, registry *sqldb.Registry) *instance {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- p.Run(ctx) }()
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := registry.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return &instance{p, registry, stop}
}

// until waits for a condition.
func until(t *testing.T, what string, reached func() bool) {
	t.Helper()
	deadlinetest.WaitUntil(t, deadlinetest.DefaultLimit, what, reached)
}

// awaitPosition waits until the named models, or all, hold a position.
func (i *instance) awaitPosition(t *testing.T, position eventstore.Position, names ...string) {
	t.Helper()
	var err error
	until(t, "position passed", func() bool {
		ctx := deadlinetest.Context(t, deadlinetest.DefaultLimit)
		err = i.AwaitPosition(ctx, position, names...)
		return err == nil
	})
}

// modelRows holds all rows of all read models.
type modelRows struct {
	Accounts []table.Account
	Keys     []table.Key
	Tokens   []table.Token
	Entries  []table.AuditEntry
}

func (i *instance) readRows(t *testing.T) modelRows {
	t.Helper()
	r, err := i.tryReadRows(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (i *instance) tryReadRows(ctx context.Context) (r modelRows, err error) {
	err = i.registry.Read(ctx, table.AccountModel, func(db *sqldb.DB) (err error) {
		if r.Accounts, err = sqldb.Select(ctx, db, table.Accounts, "order by id"); err != nil {
			return err
		}
		if r.Keys, err = sqldb.Select(ctx, db, table.Keys, "order by id"); err != nil {
			return err
		}
		r.Tokens, err = sqldb.Select(ctx, db, table.Tokens, "order by id")
		return err
	})
	if err != nil {
		return r, err
	}
	err = i.registry.Read(ctx, table.AuditModel, func(db *sqldb.DB) (err error) {
		r.Entries, err = sqldb.Select(ctx, db, table.AuditEntries, "order by position, part")
		return err
	})
	return r, err
}

func TestSubscriptionFollowsFromHandlers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		model projector.Model
		want  []string
	}{
		{account.Model, []string{"account", "token"}},
		{audit.Model, []string{"account", "locations", "token"}},
		{locations.Model(true), []string{"account", "locations"}},
		{usage.Model, []string{"usage"}},
	} {
		if got := c.model.Categories(); !slices.Equal(got, c.want) {
			t.Errorf("%s reads %v, want %v", c.model.Name, got, c.want)
		}
	}
}

// A model gathers events for larger transactions. Whoever awaits a position on the instance that fills it does not wait for that.
func TestAwaitingAPositionEndsTheGatheringOfEvents(t *testing.T) {
	t.Parallel()
	for _, isOnly := range []bool{true, false} {
		s := newCluster(t, t.TempDir())
		registry, err := sqldb.OpenRegistry(s.address)
		if err != nil {
			t.Fatal(err)
		}
		m := account.Model
		m.MinInterval = 24 * time.Hour
		p := projector.New(s.log, s.codec, registry, m)
		p.IsOnlyInstance = isOnly
		i := s.runProjector(t, p, registry)
		for range 5 {
			i.awaitPosition(t, projectortest.AppendAccounts(t, s.log, s.codec, 3))
		}
	}
}

func TestReplayFromZeroGivesTheSameRows(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := newCluster(t, address)
		i := s.startInstance(t)
		projectortest.AppendAccounts(t, s.log, s.codec, 20)
		projectortest.Append(t, s.log, s.codec, "token-t1", event.TokenIssued{Token: "t1", Role: "operator", Hash: make([]byte, 32), Hint: "ld_ct_…1234"})
		end := projectortest.Append(t, s.log, s.codec, "token-t1", event.TokenRevoked{Token: "t1", Role: "operator", Hash: make([]byte, 32), Hint: "ld_ct_…1234"})
		i.awaitPosition(t, end)
		first := i.readRows(t)
		if got, want := len(first.Entries), 20*projectortest.EventsPerAccount+2; got != want {
			t.Fatalf("got %d entries, want %d", got, want)
		}
		for _, name := range []string{"register", "history"} {
			fresh, err := i.Rebuild(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			m := map[string]table.ReadModel{"register": table.AccountModel, "history": table.AuditModel}[name]
			until(t, fresh+" serves", func() bool {
				c, err := i.registry.ServingGeneration(t.Context(), m)
				return err == nil && c.Name == fresh
			})
		}
		if diff := cmp.Diff(first, i.readRows(t)); diff != "" {
			t.Error(diff)
		}
		var dropped []string
		until(t, "the earlier generations are dropped", func() bool {
			names, err := i.Prune(t.Context())
			if dropped = append(dropped, names...); err != nil {
				t.Fatal(err)
			}
			return len(dropped) >= 2
		})
		slices.Sort(dropped)
		if diff := cmp.Diff([]string{"history-v5-g1", "register-v5-g1"}, dropped); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(first, i.readRows(t)); diff != "" {
			t.Error(diff)
		}
	})
}

// Every generation is a whole read model on disk: rebuilds must not accumulate them.
func TestRebuildsLeaveTheGenerationThatServedBeforeAndNoMore(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := newCluster(t, address)
		instances := []*instance{s.startInstance(t), s.startInstance(t)}
		end := projectortest.AppendAccounts(t, s.log, s.codec, 5)
		instances[0].awaitPosition(t, end)
		instances[1].awaitPosition(t, end)
		want := instances[0].readRows(t)
		var last string
		for n := range 4 {
			fresh, err := instances[n%2].Rebuild(t.Context(), "register")
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range instances {
				until(t, fresh+" serves", func() bool {
					c, err := i.registry.ServingGeneration(t.Context(), table.AccountModel)
					return err == nil && c.Name == fresh
				})
				if diff := cmp.Diff(want, i.readRows(t)); diff != "" {
					t.Error(diff)
				}
			}
			last = fresh
		}
		until(t, "two generations are left", func() bool {
			all, err := instances[0].registry.Generations(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			left := slices.DeleteFunc(all, func(g sqldb.Generation) bool { return !g.IsOf(table.AccountModel) })
			return len(left) == 2 && left[0].State == sqldb.Retired && left[1].Name == last && left[1].State == sqldb.Serving
		})
	})
}
