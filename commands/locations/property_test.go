package locations

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/site"
)

// trial does the same at random with the commands, on two instances that come and go, and with the model.
type trial struct {
	*testing.T
	*stage
	rng    *rand.Rand
	desks  [2]*Locations
	model  *model
	log    []string
	last   Batch
	folder string
	where  string // the referential of last
}

func TestCommandsDoWhatThePlainModelDoes(t *testing.T) {
	t.Parallel()
	steps := 500
	if os.Getenv("LIEUDIT_TEST_LONG") != "" {
		steps = 20_000
	}
	var seen sync.Map // types of events
	t.Cleanup(func() {
		for _, e := range []event.Event{event.ReferentialArchived{}, event.SitesChanged{}, event.SyncCommitted{}, event.RequestKept{}} {
			if _, ok := seen.Load(e.EventType()); !ok {
				t.Errorf("there was no %s", e.EventType())
			}
		}
	})
	for n := range 4 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			x := newTrial(t, uint64(time.Now().UnixNano())+uint64(n))
			x.run(steps)
			for _, e := range x.events(t, "locations-a") {
				seen.Store(e, true)
			}
		})
	}
}

func newTrial(t *testing.T, seed uint64) *trial {
	s := newStage(t)
	small := plan.Plan{Name: "SMALL", Sites: 60, Referentials: 3}
	s.plans.Store(&small)
	x := &trial{T: t, folder: t.TempDir(), stage: s, rng: rand.New(rand.NewPCG(seed, 1)),
		model: &model{plan: small, ban: s.ban, refs: map[string]*modelRef{}, kept: map[string]modelAnswer{}}}
	x.desks = [2]*Locations{x.instance(), x.instance()}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d, last steps:\n%s", seed, strings.Join(x.log[max(0, len(x.log)-12):], "\n"))
		}
	})
	return x
}

// instance is a new one, which may find the folds that others kept.
func (x *trial) instance() *Locations {
	l := x.desk(x.store)
	if x.rng.IntN(2) == 0 {
		kept(l, x.folder)
	}
	return l
}

func (x *trial) run(steps int) {
	for n := 0; n < steps && !x.Failed(); n++ {
		x.step()
		if n%100 == 0 {
			x.compare()
		}
	}
	x.compare()
}

func (x *trial) step() {
	l := x.desks[x.rng.IntN(2)]
	code := x.code()
	id := fmt.Sprintf("s%02d", x.rng.IntN(30))
	ctx := x.Context()
	switch dice := x.rng.IntN(100); {
	case dice == 1:
		_, _, err := l.Rename(ctx, "a", shop, code, "N")
		_, refused := x.model.ref(code)
		x.same("rename "+code, err, refused)
	case dice == 0:
		_, _, err := l.Archive(ctx, "a", shop, code)
		x.same("archive "+code, err, x.model.archive(code))
	case dice < 6:
		_, _, err := l.Open(ctx, "a", shop, code, "N")
		x.same("open "+code, err, x.model.open(code, "N"))
	case dice < 12:
		_, _, err := l.Deactivate(ctx, "a", shop, code, id)
		x.same("deactivate "+code+"/"+id, err, x.model.turn(code, id, false))
	case dice < 20:
		_, _, err := l.Reactivate(ctx, "a", shop, code, id)
		x.same("reactivate "+code+"/"+id, err, x.model.turn(code, id, true))
	case dice < 40:
		x.put(ctx, l, code, id)
	case dice < 50:
		x.patch(ctx, l, code, id)
	case dice < 51:
		x.ban.learn(fmt.Sprintf("Ville %d", x.rng.IntN(8)))
		x.log = append(x.log, "learn")
	case dice < 54:
		x.desks[x.rng.IntN(2)] = x.instance()
		x.log = append(x.log, "restart")
	default:
		x.write(ctx, l, code)
	}
}

// code is mostly one that is not archived.
func (x *trial) code() string {
	gone := 0
	for _, r := range x.model.refs {
		if r.archived {
			gone++
		}
	}
	if x.rng.IntN(10) > 0 {
		return fmt.Sprintf("r%d", gone+x.rng.IntN(3))
	}
	return fmt.Sprintf("r%d", x.rng.IntN(gone+4))
}

func (x *trial) put(ctx context.Context, l *Locations, code, id string) {
	row := Row{id, x.content(code, id)}
	got, created, _, err := l.Put(ctx, "a", shop, code, row)
	want, refused := x.model.write(code, "put", Batch{Rows: []Row{row}})
	x.same("put "+code+"/"+id, err, refused)
	if err == nil && created != (want.Created == 1) {
		x.Errorf("got created %v, want %v", created, want.Created == 1)
	}
	if err == nil {
		x.shown(code, id, got)
	}
}

func (x *trial) patch(ctx context.Context, l *Locations, code, id string) {
	name := fmt.Sprintf("P%d", x.rng.IntN(3))
	got, _, err := l.Patch(ctx, "a", shop, code, id, func(c site.Content) (site.Content, error) {
		c.Name = name
		return c, nil
	})
	r, refused := x.model.ref(code)
	if refused == nil {
		if s, ok := r.sites[id]; ok {
			s.Content.Name = name
			_, refused = x.model.write(code, "patch", Batch{Rows: []Row{{id, s.Content}}})
		} else {
			refused = ErrUnknownSite
		}
	}
	x.same("patch "+code+"/"+id, err, refused)
	if err == nil {
		x.shown(code, id, got)
	}
}

func (x *trial) write(ctx context.Context, l *Locations, code string) {
	b := Batch{Whole: x.rng.IntN(2) == 0, Confirmed: x.rng.IntN(3) == 0, DryRun: x.rng.IntN(4) == 0}
	for i := range 30 {
		if x.rng.IntN(3) == 0 {
			id := fmt.Sprintf("s%02d", i)
			b.Rows = append(b.Rows, Row{id, x.content(code, id)})
		}
	}
	x.rng.Shuffle(len(b.Rows), func(i, j int) { b.Rows[i], b.Rows[j] = b.Rows[j], b.Rows[i] })
	if x.rng.IntN(3) == 0 && x.last.Rows != nil {
		code, b.Rows = x.where, x.last.Rows // again
	}
	x.where, x.last = code, b
	if x.rng.IntN(3) == 0 {
		b.Key, b.Request = fmt.Sprint(x.rng.IntN(90)), []byte{byte(x.rng.IntN(2))}
	}
	action := "upsert"
	if b.Whole {
		action = "sync"
	}
	got, _, err := l.Write(ctx, "a", shop, code, b)
	want, refused := x.model.write(code, action, b)
	x.same(fmt.Sprintf("%s %s whole %v dry %v key %q rows %d", action, code, b.Whole, b.DryRun, b.Key, len(b.Rows)), err, refused)
	x.same("refused", got.Refused, want.Refused)
	got.Refused, want.Refused, got.Key, got.Request = nil, nil, "", ""
	if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); err == nil && diff != "" {
		x.Errorf("outcome (-want +got):\n%s", diff)
	}
}

// content is something to say of a site, now and then what it shows.
func (x *trial) content(code, id string) site.Content {
	name, line := fmt.Sprintf("N%d", x.rng.IntN(3)), strings.Repeat("1", 1+x.rng.IntN(2))
	switch x.rng.IntN(8) {
	case 0, 1:
		return at(id, name, float64(40+x.rng.IntN(2))).Content
	case 2:
		if x.rng.IntN(2) > 0 {
			break
		}
		c := at(id, name, 41).Content
		c.Properties = []byte(fmt.Sprintf("{%q:%q}", "texte", strings.Repeat("long ", 5_000)))
		return c
	case 3, 4, 5:
		if r := x.model.refs[code]; r != nil && r.sites[id].version > 0 {
			c, _, _ := r.sites[id].Show()
			if x.rng.IntN(2) == 0 {
				c.Name = name
			}
			if x.rng.IntN(4) == 0 {
				c.Address = &site.Address{Line1: line, City: "Mende"}
			}
			return c
		}
	}
	return in(id, name, line, fmt.Sprintf("Ville %d", x.rng.IntN(8))).Content
}
