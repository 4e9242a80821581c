package locations

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"lieudit/schemas/event"
	"lieudit/schemas/locations"
	"lieudit/schemas/plan"
)

// modelTest makes the same random commands on two instances, which come and go, and on the model.
type modelTest struct {
	*testing.T
	*fixture
	rng       *rand.Rand
	instances [2]*Locations
	model     *model
	log       []string
	lastBatch Batch
	folder    string
	lastCode  string // the referential of lastBatch
}

func TestCommandsAgreeWithAModel(t *testing.T) {
	t.Parallel()
	steps := 500
	if os.Getenv("LIEUDIT_TEST_LONG") != "" {
		steps = 20_000
	}
	var seen sync.Map // types of the events that were appended
	t.Cleanup(func() {
		for _, e := range []event.Event{event.ReferentialArchived{}, event.SitesChanged{}, event.SyncCommitted{}, event.UnchangedWriteRecorded{}} {
			if _, ok := seen.Load(e.EventType()); !ok {
				t.Errorf("there was no %s", e.EventType())
			}
		}
	})
	for n := range 4 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			x := newModelTest(t, uint64(time.Now().UnixNano())+uint64(n))
			x.run(steps)
			for _, e := range x.events(t, "locations-a") {
				seen.Store(e, true)
			}
		})
	}
}

func newModelTest(t *testing.T, seed uint64) *modelTest {
	s := newFixture(t)
	small := plan.Plan{Name: "SMALL", SiteCapacity: 60, MaxReferentials: 3}
	s.plans.Store(&small)
	x := &modelTest{T: t, folder: t.TempDir(), fixture: s, rng: rand.New(rand.NewPCG(seed, 1)),
		model: &model{plan: small, ban: s.ban, referentials: map[string]*modelReferential{}, answers: map[string]modelAnswer{}}}
	x.instances = [2]*Locations{x.randomInstance(), x.randomInstance()}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d, last steps:\n%s", seed, strings.Join(x.log[max(0, len(x.log)-12):], "\n"))
		}
	})
	return x
}

// randomInstance returns a new instance, which may keep snapshots and find those of others.
func (x *modelTest) randomInstance() *Locations {
	l := x.newInstance(x.store)
	if x.rng.IntN(2) == 0 {
		keepSnapshots(l, x.folder)
	}
	return l
}

func (x *modelTest) run(steps int) {
	for n := 0; n < steps && !x.Failed(); n++ {
		x.step()
		if n%100 == 0 {
			x.compare()
		}
	}
	x.compare()
}

func (x *modelTest) step() {
	l := x.instances[x.rng.IntN(2)]
	code := x.randomCode()
	id := fmt.Sprintf("s%02d", x.rng.IntN(30))
	ctx := x.Context()
	switch dice := x.rng.IntN(100); {
	case dice == 1:
		_, _, err := l.RenameReferential(ctx, "a", shopMeta, code, "N")
		_, refused := x.model.findWritable(code)
		x.checkError("rename "+code, err, refused)
	case dice == 0:
		_, _, err := l.ArchiveReferential(ctx, "a", shopMeta, code)
		x.checkError("archive "+code, err, x.model.archive(code))
	case dice < 6:
		_, _, err := l.OpenReferential(ctx, "a", shopMeta, code, "N")
		x.checkError("open "+code, err, x.model.open(code, "N"))
	case dice < 12:
		_, _, err := l.DeactivateSite(ctx, "a", shopMeta, code, id)
		x.checkError("deactivate "+code+"/"+id, err, x.model.toggle(code, id, false))
	case dice < 20:
		_, _, err := l.ReactivateSite(ctx, "a", shopMeta, code, id)
		x.checkError("reactivate "+code+"/"+id, err, x.model.toggle(code, id, true))
	case dice < 40:
		x.putSite(ctx, l, code, id)
	case dice < 50:
		x.patchSite(ctx, l, code, id)
	case dice < 51:
		x.ban.addCommune(fmt.Sprintf("Ville %d", x.rng.IntN(8)))
		x.log = append(x.log, "learn")
	case dice < 54:
		x.instances[x.rng.IntN(2)] = x.randomInstance()
		x.log = append(x.log, "restart")
	default:
		x.writeBatch(ctx, l, code)
	}
}

// randomCode returns a code, mostly of a referential that is not archived.
func (x *modelTest) randomCode() string {
	gone := 0
	for _, r := range x.model.referentials {
		if r.archived {
			gone++
		}
	}
	if x.rng.IntN(10) > 0 {
		return fmt.Sprintf("r%d", gone+x.rng.IntN(3))
	}
	return fmt.Sprintf("r%d", x.rng.IntN(gone+4))
}

func (x *modelTest) putSite(ctx context.Context, l *Locations, code, id string) {
	row := Row{id, x.randomContent(code, id)}
	got, created, _, err := l.PutSite(ctx, "a", shopMeta, code, row)
	want, refused := x.model.write(code, "put", Batch{Rows: []Row{row}})
	x.checkError("put "+code+"/"+id, err, refused)
	if err == nil && created != (want.Created == 1) {
		x.Errorf("got created %v, want %v", created, want.Created == 1)
	}
	if err == nil {
		x.checkSite(code, id, got)
	}
}

func (x *modelTest) patchSite(ctx context.Context, l *Locations, code, id string) {
	name := fmt.Sprintf("P%d", x.rng.IntN(3))
	got, _, err := l.PatchSite(ctx, "a", shopMeta, code, id, func(c locations.Content) (locations.Content, error) {
		c.Name = name
		return c, nil
	})
	r, refused := x.model.findWritable(code)
	if refused == nil {
		if s, ok := r.sites[id]; ok {
			s.Content.Name = name
			_, refused = x.model.write(code, "patch", Batch{Rows: []Row{{id, s.Content}}})
		} else {
			refused = ErrUnknownSite
		}
	}
	x.checkError("patch "+code+"/"+id, err, refused)
	if err == nil {
		x.checkSite(code, id, got)
	}
}

func (x *modelTest) writeBatch(ctx context.Context, l *Locations, code string) {
	b := Batch{IsSync: x.rng.IntN(2) == 0, Confirmed: x.rng.IntN(3) == 0, DryRun: x.rng.IntN(4) == 0}
	for i := range 30 {
		if x.rng.IntN(3) == 0 {
			id := fmt.Sprintf("s%02d", i)
			b.Rows = append(b.Rows, Row{id, x.randomContent(code, id)})
		}
	}
	x.rng.Shuffle(len(b.Rows), func(i, j int) { b.Rows[i], b.Rows[j] = b.Rows[j], b.Rows[i] })
	if x.rng.IntN(3) == 0 && x.lastBatch.Rows != nil {
		code, b.Rows = x.lastCode, x.lastBatch.Rows // the same request again
	}
	x.lastCode, x.lastBatch = code, b
	if x.rng.IntN(3) == 0 {
		b.IdempotencyKey, b.RequestDigest = fmt.Sprint(x.rng.IntN(90)), []byte{byte(x.rng.IntN(2))}
	}
	action := "upsert"
	if b.IsSync {
		action = "sync"
	}
	got, _, err := l.WriteBatch(ctx, "a", shopMeta, code, b)
	want, refused := x.model.write(code, action, b)
	x.checkError(fmt.Sprintf("%s %s whole %v dry %v key %q rows %d", action, code, b.IsSync, b.DryRun, b.IdempotencyKey, len(b.Rows)), err, refused)
	x.checkError("refused", got.Refused, want.Refused)
	got.Refused, want.Refused, got.IdempotencyKeyHash, got.RequestHash = nil, nil, "", ""
	if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); err == nil && diff != "" {
		x.Errorf("outcome (-want +got):\n%s", diff)
	}
}

// randomContent returns a content for a site, now and then the one that the site shows.
func (x *modelTest) randomContent(code, id string) locations.Content {
	name, line := fmt.Sprintf("N%d", x.rng.IntN(3)), strings.Repeat("1", 1+x.rng.IntN(2))
	switch x.rng.IntN(8) {
	case 0, 1:
		return rowAt(id, name, float64(40+x.rng.IntN(2))).Content
	case 2:
		if x.rng.IntN(2) > 0 {
			break
		}
		c := rowAt(id, name, 41).Content
		c.Properties = []byte(fmt.Sprintf("{%q:%q}", "texte", strings.Repeat("long ", 5_000)))
		return c
	case 3, 4, 5:
		if r := x.model.referentials[code]; r != nil && r.sites[id].version > 0 {
			c := r.sites[id].ShownContent()
			if x.rng.IntN(2) == 0 {
				c.Name = name
			}
			if x.rng.IntN(4) == 0 {
				c.Address = &locations.SiteAddress{Line1: line, City: "Mende"}
			}
			return c
		}
	}
	return rowWithAddress(id, name, line, fmt.Sprintf("Ville %d", x.rng.IntN(8))).Content
}

func (x *modelTest) checkError(step string, got, want error) {
	x.log = append(x.log, fmt.Sprintf("%s: %v", step, want))
	if !sameError(got, want) || got != nil && reflect.TypeOf(rootCause(got)) != reflect.TypeOf(rootCause(want)) {
		x.Errorf("%s: got error %v, want %v", step, got, want)
	}
}

func rootCause(err error) error {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}

// compare compares both instances, and a fresh one, with the model.
func (x *modelTest) compare() {
	instances := []*Locations{x.instances[0], x.instances[1], x.newInstance(x.store)}
	var states []*State
	for _, l := range instances {
		f, err := l.CountLocations(x.Context(), "a")
		if want := x.model.count(); err != nil || f != want {
			x.Errorf("got %+v, %v, want %+v", f, err, want)
		}
		l.handler.View(x.Context(), "a", func(s *State) { states = append(states, s) })
	}
	for _, folded := range states[:2] {
		if !reflect.DeepEqual(folded, states[2]) {
			x.Errorf("folded afresh (-afresh +folded):\n%s", gocmp.Diff(states[2], folded, gocmp.Exporter(func(reflect.Type) bool { return true })))
		}
	}
	for code, r := range x.model.referentials {
		if got, want := len(states[2].referentials[code].sites), len(r.sites); got != want {
			x.Errorf("%s: got %d sites, want %d", code, got, want)
		}
		for id := range r.sites {
			got, err := instances[2].readSite(x.Context(), "a", code, id)
			if err != nil {
				x.Fatal(err)
			}
			x.checkSite(code, id, got)
		}
	}
}

// checkSite compares a site with the model's.
func (x *modelTest) checkSite(code, id string, got locations.Site) {
	s := x.model.referentials[code].sites[id]
	want := locations.Site{ID: siteID("a", code, id), Referential: code, ExternalID: id, Active: s.active, Version: s.version}
	want.Show(s.StoredSite)
	want.Created, want.Modified, want.Deactivated = got.Created, got.Modified, got.Deactivated
	if !reflect.DeepEqual(want, got) {
		x.Errorf("site (-want +got):\n%s", gocmp.Diff(want, got))
	}
	if got.Created.IsZero() || got.Modified.Before(got.Created) || got.Active != got.Deactivated.IsZero() {
		x.Errorf("got times %v, %v, %v", got.Created, got.Modified, got.Deactivated)
	}
}
