package projector_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/projections/history"
	"lieudit/projections/inventory"
	"lieudit/projections/projector"
	"lieudit/projections/projector/projectortest"
	"lieudit/projections/register"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
	"lieudit/schemas/table/tabletest"
)

// placed is an instance that fills all read models of the core log, those of places with an outbox.
func (s *scene) placed(t *testing.T) *instance {
	t.Helper()
	return s.start(t, register.Model, history.Model, inventory.Model(true))
}

// raw appends an event as it is, whatever it holds.
func (s *scene) raw(t *testing.T, stream, name, data string) eventstore.Position {
	t.Helper()
	done, err := s.log.Append(t.Context(), stream, eventstore.Any, []eventstore.Proposed{
		{ID: uuid.New(), Type: name, Data: []byte(data), Metadata: []byte(`{"end":true}`)}})
	if err != nil {
		t.Fatal(err)
	}
	return done.Position
}

// append adds events in one append.
func (s *scene) append(t *testing.T, stream string, events ...event.Event) eventstore.Position {
	t.Helper()
	return projectortest.Append(t, s.log, s.codec, stream, events...)
}

// siteRow is a change of one site.
func siteRow(code, id, op string, version int64) event.SitesChanged {
	return event.SitesChanged{
		SitesWritten: event.SitesWritten{Referential: code, Action: "put", After: 1},
		Rows:         []event.SiteRow{{ExternalID: id, Site: "site-" + id, Op: op, Version: version, Content: event.Personal(fmt.Sprintf(`{"content":{"nom":"%s %d"}}`, id, version))}},
	}
}

// shown are the rows of an account's places, or why they are not to be shown.
func (i *instance) shown(t *testing.T, account string) (sites []table.Site, referentials []table.Referential, err error) {
	t.Helper()
	err = i.shelf.ReadAccount(t.Context(), table.Places, account, func(db *table.DB) (err error) {
		if sites, err = table.Select(t.Context(), db, table.Sites, "where account = ? order by id", account); err != nil {
			return err
		}
		referentials, err = table.Select(t.Context(), db, table.Referentials, "where account = ? order by id", account)
		return err
	})
	return sites, referentials, err
}

// stopped fails unless a model has stopped an account, and says how.
func (i *instance) stopped(t *testing.T, m table.Model, account string) table.AccountStatus {
	t.Helper()
	var stop *table.StoppedError
	err := i.shelf.ReadAccount(t.Context(), m, account, func(*table.DB) error { return nil })
	if !errors.As(err, &stop) {
		t.Fatalf("%s: got %v for account %s, want it stopped", m.Name, err, account)
	}
	return stop.AccountStatus
}

// runs waits until a model shows an account.
func (i *instance) runs(t *testing.T, m table.Model, account string) {
	t.Helper()
	until(t, account+" runs in "+m.Name, func() bool {
		return i.shelf.ReadAccount(t.Context(), m, account, func(*table.DB) error { return nil }) == nil
	})
}

func names(sites []table.Site) (all []string) {
	for _, s := range sites {
		all = append(all, fmt.Sprintf("%s v%d", s.ExternalID, s.Version))
	}
	return all
}

const sitesChanged = "locations.sites-changed.v1"

// unusables are the ways in which an event cannot be used, in the stream of account a.
var unusables = map[string]func(t *testing.T, s *scene) eventstore.Position{
	"it is not what its type says": func(t *testing.T, s *scene) eventstore.Position {
		return s.raw(t, "locations-a", sitesChanged, `{"rows": 3}`)
	},
	"it is no JSON": func(t *testing.T, s *scene) eventstore.Position {
		return s.raw(t, "locations-a", sitesChanged, `{`)
	},
	"its envelope is no JSON": func(t *testing.T, s *scene) eventstore.Position {
		done, err := s.log.Append(t.Context(), "locations-a", eventstore.Any, []eventstore.Proposed{
			{ID: uuid.New(), Type: sitesChanged, Data: []byte(`{}`), Metadata: []byte(`[`)}})
		if err != nil {
			t.Fatal(err)
		}
		return done.Position
	},
	"it commits what is not staged": func(t *testing.T, s *scene) eventstore.Position {
		return s.append(t, "locations-a", event.SyncCommitted{SitesWritten: event.SitesWritten{Referential: "m"}, Sync: uuid.NewString(), Events: 2, Digest: []byte("d")})
	},
	"it commits more than is staged": func(t *testing.T, s *scene) eventstore.Position {
		commit := s.stage(t, 100)
		commit.Events++
		return s.append(t, "locations-a", commit)
	},
	"it commits something else than is staged": func(t *testing.T, s *scene) eventstore.Position {
		commit := s.stage(t, 100)
		commit.Digest[0]++
		return s.append(t, "locations-a", commit)
	},
}

// TestUnusableEventStopsItsAccountAlone until a correction names it: then all rows are as if it had never been there.
func TestUnusableEventStopsItsAccountAlone(t *testing.T) {
	t.Parallel()
	for name, unusable := range unusables {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			tabletest.Each(t, func(t *testing.T, address string) {
				s := newScene(t, address)
				s.append(t, "locations-b", event.ReferentialOpened{Code: "m"})
				s.append(t, "locations-a", event.ReferentialOpened{Code: "m"}, siteRow("m", "x", event.SiteCreated, 1))
				at := unusable(t, s)
				s.append(t, "locations-a", siteRow("m", "y", event.SiteCreated, 1))
				s.append(t, "account-a", event.AccountActionRefused{Action: "close"})
				end := s.append(t, "locations-b", siteRow("m", "z", event.SiteCreated, 1))
				i := s.placed(t)
				i.passed(t, end)
				for _, m := range []table.Model{table.Places, table.History} {
					if got := i.stopped(t, m, "a"); got.Kind != table.AccountUnusable || got.Position != int64(at) || got.Stream != "locations-a" || got.Revision != 2 || got.Reason == "" {
						t.Errorf("%s: got %+v, want it stopped at %d", m.Name, got, at)
					}
				}
				if sites, _, err := i.shown(t, "b"); err != nil || len(sites) != 1 {
					t.Errorf("got %v, %v of the other account", names(sites), err)
				}
				if err := i.Ready(t.Context()); err != nil {
					t.Errorf("not ready: %v", err)
				}
				i.stop()
				i = s.placed(t)
				end = s.append(t, "locations-a", siteRow("m", "x", event.SiteUpdated, 2))
				i.passed(t, end)
				i.stopped(t, table.Places, "a")
				end = s.append(t, "locations-a", event.LocationsEventVoided{EventVoided: event.EventVoided{Revision: 2, Type: sitesChanged, Why: name}})
				i.passed(t, end)
				i.runs(t, table.Places, "a")
				i.runs(t, table.History, "a")
				i.asRebuilt(t, s, "a")
				sites, _, _ := i.shown(t, "a")
				if diff := cmp.Diff([]string{"x v2", "y v1"}, names(sites)); diff != "" {
					t.Error(diff)
				}
				i.passed(t, s.append(t, "locations-a", siteRow("m", "y", event.SiteUpdated, 2)))
				if sites, _, err := i.shown(t, "a"); err != nil || names(sites)[1] != "y v2" {
					t.Errorf("got %v, %v after a later change", names(sites), err)
				}
			})
		})
	}
}

// asRebuilt fails unless an account's rows are what a copy that is filled from the beginning holds.
func (i *instance) asRebuilt(t *testing.T, s *scene, account string) {
	t.Helper()
	all := func() (r struct {
		Sites        []table.Site
		Referentials []table.Referential
		Entries      []table.Entry
	}) {
		var err error
		if r.Sites, r.Referentials, err = i.shown(t, account); err != nil {
			t.Fatal(err)
		}
		err = i.shelf.ReadAccount(t.Context(), table.History, account, func(db *table.DB) (err error) {
			r.Entries, err = table.Select(t.Context(), db, table.Entries, "where account = ? order by position, part", account)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	want := all()
	for _, m := range []table.Model{table.Places, table.History} {
		name, err := i.Rebuild(t.Context(), m.Name)
		if err != nil {
			t.Fatal(err)
		}
		until(t, "the fresh copy serves", func() bool {
			c, err := i.shelf.Reads(t.Context(), m)
			return err == nil && c.Name == name
		})
		i.runs(t, m, account)
	}
	if diff := cmp.Diff(want, all(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("refolded rows are not those of a copy from the beginning (-refolded +rebuilt):\n%s", diff)
	}
}

func TestUsableEventThatACorrectionNamesIsTakenBack(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		s := newScene(t, address)
		s.append(t, "locations-a", event.ReferentialOpened{Code: "m"}, siteRow("m", "x", event.SiteCreated, 1))
		s.append(t, "locations-a", siteRow("m", "wrong", event.SiteCreated, 1))
		i := s.placed(t)
		i.passed(t, s.append(t, "locations-a", siteRow("m", "y", event.SiteCreated, 1)))
		i.passed(t, s.append(t, "locations-a", event.LocationsEventVoided{EventVoided: event.EventVoided{Revision: 2}}))
		i.runs(t, table.Places, "a")
		i.runs(t, table.History, "a")
		sites, _, err := i.shown(t, "a")
		if diff := cmp.Diff([]string{"x v1", "y v1"}, names(sites)); diff != "" || err != nil {
			t.Error(err, diff)
		}
		i.asRebuilt(t, s, "a")
	})
}

// TestRegisterAndTokensAreRefoldedToo: the streams of accounts and of tokens.
func TestRegisterAndTokensAreRefoldedToo(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		s := newScene(t, address)
		projectortest.Fill(t, s.log, s.codec, 3)
		s.append(t, "token-t", event.TokenIssued{Token: "t", Role: "customer", Account: "a000000", Hash: make([]byte, 32)})
		s.raw(t, "token-t", "token.revoked.v1", `[]`)
		s.append(t, "token-u", event.TokenIssued{Token: "u", Role: "customer", Account: "a000000", Hash: make([]byte, 32)})
		s.raw(t, "account-a000001", "account.closed.v1", `7`)
		i := s.start(t)
		i.passed(t, s.append(t, "account-a000001", event.AccountClosed{}))
		for _, m := range []table.Model{table.Register, table.History} {
			i.stopped(t, m, "a000001")
			i.stopped(t, m, "/token-t")
			i.runs(t, m, "a000000")
		}
		s.append(t, "token-t", event.TokenEventVoided{EventVoided: event.EventVoided{Revision: 1}})
		i.passed(t, s.append(t, "account-a000001", event.AccountEventVoided{EventVoided: event.EventVoided{Revision: projectortest.LifeEvents}}))
		for _, m := range []table.Model{table.Register, table.History} {
			i.runs(t, m, "a000001")
			i.runs(t, m, "/token-t")
		}
		got := i.rows(t)
		if len(got.Accounts) != 3 || got.Accounts[1].Closed == 0 || len(got.Tokens) != 2 {
			t.Errorf("got %+v and %+v", got.Accounts, got.Tokens)
		}
		tokens := 0
		for _, e := range got.Entries {
			if e.Kind == table.KindToken && e.Account == "a000000" {
				tokens++
			}
		}
		if tokens != 2 {
			t.Errorf("got %d entries of tokens of the account, want both", tokens)
		}
		want := got
		for _, m := range []string{"register", "history"} {
			name, err := i.Rebuild(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			until(t, "the fresh copy serves", func() bool {
				model := map[string]table.Model{"register": table.Register, "history": table.History}[m]
				c, err := i.shelf.Reads(t.Context(), model)
				return err == nil && c.Name == name
			})
		}
		for _, m := range []table.Model{table.Register, table.History} {
			i.runs(t, m, "a000001")
			i.runs(t, m, "/token-t")
		}
		if diff := cmp.Diff(want, i.rows(t)); diff != "" {
			t.Errorf("refolded rows are not those of a copy from the beginning (-refolded +rebuilt):\n%s", diff)
		}
	})
}

// locked is a vault that cannot open what some subjects sealed for now.
type locked struct {
	projectortest.Vault
	mu   sync.Mutex
	lost map[string]bool
}

func (v *locked) Key(ctx context.Context, subject string, create bool) ([]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.lost[subject] && !create {
		return nil, &eventstore.UnreadableError{Subject: subject, Err: errors.New("no key opens it")}
	}
	return v.Vault.Key(ctx, subject, create)
}

func (v *locked) lose(subject string, lost bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lost[subject] = lost
}

func TestUnreadableAccountIsStoppedAloneAndRefoldedOnceItOpens(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		v := &locked{lost: map[string]bool{}}
		s := &scene{address: address, log: projectortest.Journal(t), codec: eventstore.NewCodec(v)}
		for _, account := range []string{"a", "b"} {
			s.append(t, "locations-"+account, event.ReferentialOpened{Code: "m"}, siteRow("m", "x", event.SiteCreated, 1))
		}
		i := s.placed(t)
		i.passed(t, s.append(t, "locations-a", siteRow("m", "y", event.SiteCreated, 1)))
		v.lose("a", true)
		at := s.append(t, "locations-a", siteRow("m", "z", event.SiteCreated, 1))
		s.append(t, "locations-a", siteRow("m", "z", event.SiteUpdated, 2))
		i.passed(t, s.append(t, "locations-b", siteRow("m", "y", event.SiteCreated, 1)))
		if got := i.stopped(t, table.Places, "a"); got.Kind != table.AccountUnreadable || got.Position != int64(at) {
			t.Errorf("got %+v", got)
		}
		i.runs(t, table.History, "a") // it reads no personal field
		if sites, _, err := i.shown(t, "b"); err != nil || len(sites) != 2 {
			t.Errorf("got %v, %v of the other account", names(sites), err)
		}
		all, err := i.StoppedAccounts(t.Context())
		if err != nil || len(all) != 1 || all[0].Account != "a" || all[0].Kind != table.AccountUnreadable {
			t.Errorf("got %+v, %v", all, err)
		}
		if err := i.Refold(t.Context(), "a"); err != nil { // too early
			t.Fatal(err)
		}
		until(t, "it is stopped again", func() bool { return i.stopped(t, table.Places, "a").Kind == table.AccountUnreadable })
		v.lose("a", false)
		if err := i.Refold(t.Context(), "a", "b", "nobody"); err != nil {
			t.Fatal(err)
		}
		i.runs(t, table.Places, "a")
		sites, _, _ := i.shown(t, "a")
		if diff := cmp.Diff([]string{"x v1", "y v1", "z v2"}, names(sites)); diff != "" {
			t.Error(diff)
		}
	})
}

// TestEmptyCommitIsPassedOverAndSaidOnce: earlier releases left commits without a sync id.
func TestEmptyCommitIsPassedOverAndSaidOnce(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		s := newScene(t, address)
		s.append(t, "locations-a", event.ReferentialOpened{Code: "m"}, siteRow("m", "x", event.SiteCreated, 1))
		at := s.append(t, "locations-a", event.SyncCommitted{SitesWritten: event.SitesWritten{Referential: "m", Action: "sync", Created: 10_000, After: 10_000, Key: "k", Request: "r"}})
		s.append(t, "locations-a", event.SyncCommitted{SitesWritten: event.SitesWritten{Referential: "none"}})
		end := s.append(t, "locations-a", siteRow("m", "y", event.SiteCreated, 1))
		shelf, err := table.OpenShelf(address)
		if err != nil {
			t.Fatal(err)
		}
		p := projector.New(s.log, s.codec, shelf, history.Model, inventory.Model(true))
		var said bytes.Buffer
		p.Log = slog.New(slog.NewTextHandler(&said, nil))
		i := s.run(t, p, shelf)
		i.passed(t, end)
		sites, referentials, err := i.shown(t, "a")
		if err != nil || len(sites) != 2 || referentials[0].Active != 1 {
			t.Errorf("got %v, %+v, %v", names(sites), referentials, err)
		}
		all, err := i.StoppedAccounts(t.Context())
		if err != nil || len(all) != 2 || all[0].Stopped() || all[0].Empty != int64(at) {
			t.Errorf("got %+v, %v", all, err)
		}
		i.asRebuilt(t, s, "a")
		i.stop()
		if n := strings.Count(said.String(), "without a sync id"); n != 2 {
			t.Errorf("said %d times, want once of each:\n%s", n, &said)
		}
	})
}

// TestRefoldLosesNothingThatHappensMeanwhile: while corrections come one after the other, the account and others go on.
func TestRefoldLosesNothingThatHappensMeanwhile(t *testing.T) {
	t.Parallel()
	const changes, corrections = 300, 20
	tabletest.Each(t, func(t *testing.T, address string) {
		s := newScene(t, address)
		for _, account := range []string{"a", "b"} {
			s.append(t, "locations-"+account, event.ReferentialOpened{Code: "m"})
		}
		first, second := s.placed(t), s.placed(t)
		var last atomic.Uint64
		var writers sync.WaitGroup
		for _, account := range []string{"a", "b"} {
			writers.Go(func() {
				for n := range changes {
					op, version := event.SiteCreated, int64(1)
					if n%2 == 1 {
						op, version = event.SiteUpdated, 2
					}
					at := uint64(s.append(t, "locations-"+account, siteRow("m", fmt.Sprintf("s%03d", n/2), op, version)))
					for was := last.Load(); was < at && !last.CompareAndSwap(was, at); was = last.Load() {
					}
				}
			})
		}
		var end eventstore.Position
		for range corrections {
			at := s.raw(t, "locations-a", sitesChanged, `{`)
			revision := eventstore.Revision(-1)
			for r, err := range s.log.ReadStream(t.Context(), "locations-a", 0, eventstore.Forward) {
				if err != nil {
					t.Fatal(err)
				}
				if r.Position == at {
					revision = r.Revision
				}
			}
			end = s.append(t, "locations-a", event.LocationsEventVoided{EventVoided: event.EventVoided{Revision: int64(revision)}})
		}
		writers.Wait()
		first.passed(t, max(end, eventstore.Position(last.Load())))
		for _, i := range []*instance{first, second} {
			i.runs(t, table.Places, "a")
			i.runs(t, table.History, "a")
			for _, account := range []string{"a", "b"} {
				sites, _, err := i.shown(t, account)
				if err != nil || len(sites) != changes/2 {
					t.Errorf("%s: got %d sites, %v", account, len(sites), err)
				}
				for _, site := range sites {
					if site.Version != 2 {
						t.Errorf("%s is at version %d", site.ID, site.Version)
					}
				}
			}
		}
		first.asRebuilt(t, s, "a")
	})
}

func TestCataloguedTypeWithoutARulePasses(t *testing.T) {
	t.Parallel()
	m := projector.Model{Model: table.Model{Name: "ruleless", Version: 1}, Categories: eventstore.Filter{"locations"}}
	s := newScene(t, t.TempDir())
	i := s.start(t, m)
	i.passed(t, s.append(t, "locations-a", event.ReferentialOpened{Code: "m"}))
	i.passed(t, s.raw(t, "locations-a", sitesChanged, `{`)) // it is of no use here, so nobody looks at it
}
