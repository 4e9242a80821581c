package projector_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/eventstore"
	"lieudit/projections/history"
	"lieudit/projections/projector"
	"lieudit/projections/projector/projectortest"
	"lieudit/projections/register"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
	"lieudit/schemas/table/tabletest"
)

const patience = 60 * time.Second

// scene is one database and one log, with any number of instances over them.
type scene struct {
	address string
	log     eventstore.Store
	codec   *eventstore.Codec
	vault   *projectortest.Vault
}

func newScene(t *testing.T, address string) *scene {
	v := &projectortest.Vault{}
	return &scene{address, projectortest.Journal(t), eventstore.NewCodec(v), v}
}

// instance is a running projector and what it answers from.
type instance struct {
	*projector.Projector
	shelf *table.Shelf
	stop  func()
}

func (s *scene) start(t *testing.T, models ...projector.Model) *instance {
	t.Helper()
	if len(models) == 0 {
		models = []projector.Model{register.Model, history.Model}
	}
	shelf, err := table.OpenShelf(s.address)
	if err != nil {
		t.Fatal(err)
	}
	return s.run(t, projector.New(s.log, s.codec, shelf, models...), shelf)
}

// run runs a projector until the test ends, or its instance is stopped.
func (s *scene) run(t *testing.T, p *projector.Projector, shelf *table.Shelf) *instance {
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
		if err := shelf.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return &instance{p, shelf, stop}
}

// until waits for a condition.
func until(t *testing.T, what string, reached func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !reached() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// passed waits until the named models the instance answers from, or all of them, hold a position.
func (i *instance) passed(t *testing.T, position eventstore.Position, names ...string) {
	t.Helper()
	var err error
	until(t, "position passed", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		err = i.Wait(ctx, position, names...)
		return err == nil
	})
}

// rows is everything in the read models.
type rows struct {
	Accounts []table.Account
	Keys     []table.Key
	Tokens   []table.Token
	Entries  []table.Entry
}

func (i *instance) rows(t *testing.T) rows {
	t.Helper()
	var r rows
	err := i.shelf.Read(t.Context(), table.Register, func(db *table.DB) (err error) {
		if r.Accounts, err = table.Select(t.Context(), db, table.Accounts, "order by id"); err != nil {
			return err
		}
		if r.Keys, err = table.Select(t.Context(), db, table.Keys, "order by id"); err != nil {
			return err
		}
		r.Tokens, err = table.Select(t.Context(), db, table.Tokens, "order by id")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = i.shelf.Read(t.Context(), table.History, func(db *table.DB) (err error) {
		r.Entries, err = table.Select(t.Context(), db, table.Entries, "order by position, part")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestEveryEventOfItsCategoriesHasARule(t *testing.T) {
	t.Parallel()
	for _, m := range []projector.Model{register.Model, history.Model} {
		if missing := m.Unruled(); len(missing) > 0 {
			t.Errorf("%s neither handles nor ignores %v", m.Name, missing)
		}
	}
}

func TestReplayFromZeroGivesTheSameRows(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		s := newScene(t, address)
		i := s.start(t)
		projectortest.Fill(t, s.log, s.codec, 20)
		projectortest.Append(t, s.log, s.codec, "token-t1", event.TokenIssued{Token: "t1", Role: "operator", Hash: make([]byte, 32), Hint: "ld_ct_…1234"})
		end := projectortest.Append(t, s.log, s.codec, "token-t1", event.TokenRevoked{Token: "t1", Role: "operator", Hash: make([]byte, 32), Hint: "ld_ct_…1234"})
		i.passed(t, end)
		first := i.rows(t)
		if got, want := len(first.Entries), 20*projectortest.LifeEvents+2; got != want {
			t.Fatalf("got %d entries, want %d", got, want)
		}
		for _, name := range []string{"register", "history"} {
			fresh, err := i.Rebuild(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			m := map[string]table.Model{"register": table.Register, "history": table.History}[name]
			until(t, fresh+" serves", func() bool {
				c, err := i.shelf.Reads(t.Context(), m)
				return err == nil && c.Name == fresh
			})
		}
		if diff := cmp.Diff(first, i.rows(t)); diff != "" {
			t.Error(diff)
		}
		var dropped []string
		until(t, "the copies of before are dropped", func() bool {
			names, err := i.Prune(t.Context())
			if dropped = append(dropped, names...); err != nil {
				t.Fatal(err)
			}
			return len(dropped) >= 2
		})
		slices.Sort(dropped)
		if diff := cmp.Diff([]string{"history-v3-g1", "register-v2-g1"}, dropped); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(first, i.rows(t)); diff != "" {
			t.Error(diff)
		}
	})
}
