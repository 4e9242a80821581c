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
	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/projections/account"
	"lieudit/projections/audit"
	"lieudit/projections/locations"
	"lieudit/projections/projector"
	"lieudit/projections/projector/projectortest"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

// startAllModels starts an instance that fills all read models of the core log, the locations with an outbox.
func (s *cluster) startAllModels(t *testing.T) *instance {
	t.Helper()
	return s.startInstance(t, account.Model, audit.Model, locations.Model(true))
}

// appendRaw appends an event with arbitrary data.
func (s *cluster) appendRaw(t *testing.T, stream, name, data string) eventstore.Position {
	t.Helper()
	done, err := s.log.Append(t.Context(), stream, eventstore.Any, []eventstore.ProposedEvent{
		{ID: uuid.New(), Type: name, Data: []byte(data), Metadata: []byte(`{"end":true}`)}})
	if err != nil {
		t.Fatal(err)
	}
	return done.Position
}

// appendEvents appends events in one append.
func (s *cluster) appendEvents(t *testing.T, stream string, events ...event.Event) eventstore.Position {
	t.Helper()
	return projectortest.Append(t, s.log, s.codec, stream, events...)
}

// siteRow is a change of one site.
func siteRow(code, id, op string, version int64) event.SitesChanged {
	return event.SitesChanged{
		SiteWriteSummary: event.SiteWriteSummary{Referential: code, Action: "put", ActiveAfter: 1},
		Rows:             []event.SiteRow{{ExternalID: id, SiteID: "site-" + id, Operation: op, Version: version, Content: event.Personal(fmt.Sprintf(`{"content":{"nom":"%s %d"}}`, id, version))}},
	}
}

// accountRows returns the rows of an account's locations, or why they must not be shown.
func (i *instance) accountRows(t *testing.T, account string) (sites []table.Site, referentials []table.Referential, err error) {
	t.Helper()
	err = i.registry.ReadAccount(t.Context(), table.LocationsModel, account, func(db *sqldb.DB) (err error) {
		if sites, err = sqldb.Select(t.Context(), db, table.Sites, "where account = ? order by id", account); err != nil {
			return err
		}
		referentials, err = sqldb.Select(t.Context(), db, table.Referentials, "where account = ? order by id", account)
		return err
	})
	return sites, referentials, err
}

// requireStopped fails unless a model has stopped an account, and returns how.
func (i *instance) requireStopped(t *testing.T, m table.ReadModel, account string) table.AccountStatus {
	t.Helper()
	var stop *table.StoppedError
	err := i.registry.ReadAccount(t.Context(), m, account, func(*sqldb.DB) error { return nil })
	if !errors.As(err, &stop) {
		t.Fatalf("%s: got %v for account %s, want it stopped", m.Name, err, account)
	}
	return stop.AccountStatus
}

// awaitRunning waits until a model shows an account again.
func (i *instance) awaitRunning(t *testing.T, m table.ReadModel, account string) {
	t.Helper()
	until(t, account+" runs in "+m.Name, func() bool {
		return i.registry.ReadAccount(t.Context(), m, account, func(*sqldb.DB) error { return nil }) == nil
	})
}

func siteNames(sites []table.Site) (all []string) {
	for _, s := range sites {
		all = append(all, fmt.Sprintf("%s v%d", s.ExternalID, s.Version))
	}
	return all
}

const sitesChanged = "locations.sites-changed.v1"

// unusableEvents are the ways in which an event cannot be used, in the stream of account a.
var unusableEvents = map[string]func(t *testing.T, s *cluster) eventstore.Position{
	"it is not what its type says": func(t *testing.T, s *cluster) eventstore.Position {
		return s.appendRaw(t, "locations-a", sitesChanged, `{"rows": 3}`)
	},
	"it is no JSON": func(t *testing.T, s *cluster) eventstore.Position {
		return s.appendRaw(t, "locations-a", sitesChanged, `{`)
	},
	"its envelope is no JSON": func(t *testing.T, s *cluster) eventstore.Position {
		done, err := s.log.Append(t.Context(), "locations-a", eventstore.Any, []eventstore.ProposedEvent{
			{ID: uuid.New(), Type: sitesChanged, Data: []byte(`{}`), Metadata: []byte(`[`)}})
		if err != nil {
			t.Fatal(err)
		}
		return done.Position
	},
	"it commits what is not staged": func(t *testing.T, s *cluster) eventstore.Position {
		return s.appendEvents(t, "locations-a", event.SyncCommitted{SiteWriteSummary: event.SiteWriteSummary{Referential: "m"}, SyncID: uuid.NewString(), EventCount: 2, Digest: []byte("d")})
	},
	"it commits more than is staged": func(t *testing.T, s *cluster) eventstore.Position {
		commit := s.appendStaged(t, 100)
		commit.EventCount++
		return s.appendEvents(t, "locations-a", commit)
	},
	"it commits something else than is staged": func(t *testing.T, s *cluster) eventstore.Position {
		commit := s.appendStaged(t, 100)
		commit.Digest[0]++
		return s.appendEvents(t, "locations-a", commit)
	},
}

// TestUnusableEventStopsItsAccountAlone: until a correction names it; then all rows are as if the event had never existed.
func TestUnusableEventStopsItsAccountAlone(t *testing.T) {
	t.Parallel()
	for name, unusable := range unusableEvents {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
				s := newCluster(t, address)
				s.appendEvents(t, "locations-b", event.ReferentialOpened{Code: "m"})
				s.appendEvents(t, "locations-a", event.ReferentialOpened{Code: "m"}, siteRow("m", "x", event.SiteCreated, 1))
				at := unusable(t, s)
				s.appendEvents(t, "locations-a", siteRow("m", "y", event.SiteCreated, 1))
				s.appendEvents(t, "account-a", event.AccountActionRefused{Action: "close"})
				end := s.appendEvents(t, "locations-b", siteRow("m", "z", event.SiteCreated, 1))
				i := s.startAllModels(t)
				i.awaitPosition(t, end)
				for _, m := range []table.ReadModel{table.LocationsModel, table.AuditModel} {
					if got := i.requireStopped(t, m, "a"); got.Kind != table.AccountUnusable || got.Position != int64(at) || got.Stream != "locations-a" || got.Revision != 2 || got.Reason == "" {
						t.Errorf("%s: got %+v, want it stopped at %d", m.Name, got, at)
					}
				}
				if sites, _, err := i.accountRows(t, "b"); err != nil || len(sites) != 1 {
					t.Errorf("got %v, %v of the other account", siteNames(sites), err)
				}
				if err := i.Ready(t.Context()); err != nil {
					t.Errorf("not ready: %v", err)
				}
				i.stop()
				i = s.startAllModels(t)
				end = s.appendEvents(t, "locations-a", siteRow("m", "x", event.SiteUpdated, 2))
				i.awaitPosition(t, end)
				i.requireStopped(t, table.LocationsModel, "a")
				end = s.appendEvents(t, "locations-a", event.LocationsEventVoided{EventVoided: event.EventVoided{Revision: 2, Type: sitesChanged, Reason: name}})
				i.awaitPosition(t, end)
				i.awaitRunning(t, table.LocationsModel, "a")
				i.awaitRunning(t, table.AuditModel, "a")
				i.checkEqualsRebuilt(t, s, "a")
				sites, _, _ := i.accountRows(t, "a")
				if diff := cmp.Diff([]string{"x v2", "y v1"}, siteNames(sites)); diff != "" {
					t.Error(diff)
				}
				i.awaitPosition(t, s.appendEvents(t, "locations-a", siteRow("m", "y", event.SiteUpdated, 2)))
				if sites, _, err := i.accountRows(t, "a"); err != nil || siteNames(sites)[1] != "y v2" {
					t.Errorf("got %v, %v after a later change", siteNames(sites), err)
				}
			})
		})
	}
}

// checkEqualsRebuilt fails unless an account's rows equal those of a generation filled from the beginning.
func (i *instance) checkEqualsRebuilt(t *testing.T, s *cluster, account string) {
	t.Helper()
	all := func() (r struct {
		Sites        []table.Site
		Referentials []table.Referential
		Entries      []table.AuditEntry
	}) {
		var err error
		if r.Sites, r.Referentials, err = i.accountRows(t, account); err != nil {
			t.Fatal(err)
		}
		err = i.registry.ReadAccount(t.Context(), table.AuditModel, account, func(db *sqldb.DB) (err error) {
			r.Entries, err = sqldb.Select(t.Context(), db, table.AuditEntries, "where account = ? order by position, part", account)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	want := all()
	for _, m := range []table.ReadModel{table.LocationsModel, table.AuditModel} {
		name, err := i.Rebuild(t.Context(), m.Name)
		if err != nil {
			t.Fatal(err)
		}
		until(t, "the new generation serves", func() bool {
			c, err := i.registry.ServingGeneration(t.Context(), m)
			return err == nil && c.Name == name
		})
		i.awaitRunning(t, m, account)
	}
	if diff := cmp.Diff(want, all(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("refolded rows are not those of a generation filled from the first event (-refolded +rebuilt):\n%s", diff)
	}
}

func TestCorrectionUndoesAnEventThatWasApplied(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := newCluster(t, address)
		s.appendEvents(t, "locations-a", event.ReferentialOpened{Code: "m"}, siteRow("m", "x", event.SiteCreated, 1))
		s.appendEvents(t, "locations-a", siteRow("m", "wrong", event.SiteCreated, 1))
		i := s.startAllModels(t)
		i.awaitPosition(t, s.appendEvents(t, "locations-a", siteRow("m", "y", event.SiteCreated, 1)))
		i.awaitPosition(t, s.appendEvents(t, "locations-a", event.LocationsEventVoided{EventVoided: event.EventVoided{Revision: 2}}))
		i.awaitRunning(t, table.LocationsModel, "a")
		i.awaitRunning(t, table.AuditModel, "a")
		sites, _, err := i.accountRows(t, "a")
		if diff := cmp.Diff([]string{"x v1", "y v1"}, siteNames(sites)); diff != "" || err != nil {
			t.Error(err, diff)
		}
		i.checkEqualsRebuilt(t, s, "a")
	})
}

// TestAccountsAndTokensAreRefoldedToo: not only sites.
func TestAccountsAndTokensAreRefoldedToo(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := newCluster(t, address)
		projectortest.AppendAccounts(t, s.log, s.codec, 3)
		s.appendEvents(t, "token-t", event.TokenIssued{Token: "t", Role: "customer", Account: "a000000", Hash: make([]byte, 32)})
		s.appendRaw(t, "token-t", "token.revoked.v1", `[]`)
		s.appendEvents(t, "token-u", event.TokenIssued{Token: "u", Role: "customer", Account: "a000000", Hash: make([]byte, 32)})
		s.appendRaw(t, "account-a000001", "account.closed.v1", `7`)
		i := s.startInstance(t)
		i.awaitPosition(t, s.appendEvents(t, "account-a000001", event.AccountClosed{}))
		for _, m := range []table.ReadModel{table.AccountModel, table.AuditModel} {
			i.requireStopped(t, m, "a000001")
			i.requireStopped(t, m, "/token-t")
			i.awaitRunning(t, m, "a000000")
		}
		s.appendEvents(t, "token-t", event.TokenEventVoided{EventVoided: event.EventVoided{Revision: 1}})
		i.awaitPosition(t, s.appendEvents(t, "account-a000001", event.AccountEventVoided{EventVoided: event.EventVoided{Revision: projectortest.EventsPerAccount}}))
		for _, m := range []table.ReadModel{table.AccountModel, table.AuditModel} {
			i.awaitRunning(t, m, "a000001")
			i.awaitRunning(t, m, "/token-t")
		}
		got := i.readRows(t)
		if len(got.Accounts) != 3 || got.Accounts[1].Closed == 0 || len(got.Tokens) != 2 {
			t.Errorf("got %+v and %+v", got.Accounts, got.Tokens)
		}
		tokens := 0
		for _, e := range got.Entries {
			if e.Kind == table.AuditKindToken && e.Account == "a000000" {
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
			until(t, "the new generation serves", func() bool {
				model := map[string]table.ReadModel{"register": table.AccountModel, "history": table.AuditModel}[m]
				c, err := i.registry.ServingGeneration(t.Context(), model)
				return err == nil && c.Name == name
			})
		}
		for _, m := range []table.ReadModel{table.AccountModel, table.AuditModel} {
			i.awaitRunning(t, m, "a000001")
			i.awaitRunning(t, m, "/token-t")
		}
		if diff := cmp.Diff(want, i.readRows(t)); diff != "" {
			t.Errorf("refolded rows are not those of a generation filled from the first event (-refolded +rebuilt):\n%s", diff)
		}
	})
}

// lockedVault is a vault that temporarily cannot decrypt the fields of some subjects.
type lockedVault struct {
	projectortest.Vault
	mu        sync.Mutex
	lost      map[string]bool
	afterLost map[string]func() // called once, after a key was found lost
}

// onLost has f called once, before the next caller learns that the key is lost.
func (v *lockedVault) onLost(subject string, f func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.afterLost = map[string]func(){subject: f}
}

func (v *lockedVault) Key(ctx context.Context, subject string, create bool) ([]byte, error) {
	v.mu.Lock()
	isLost, met := v.lost[subject] && !create, v.afterLost[subject]
	if isLost {
		delete(v.afterLost, subject)
	}
	v.mu.Unlock()
	if isLost && met != nil {
		met()
	}
	if isLost {
		return nil, &eventstore.UnreadableError{Subject: subject, Err: errors.New("no key opens it")}
	}
	return v.Vault.Key(ctx, subject, create)
}

func (v *lockedVault) setLost(subject string, lost bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lost[subject] = lost
}

func TestUnreadableAccountIsStoppedAloneAndRefoldedOnceItCanBeDecrypted(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		v := &lockedVault{lost: map[string]bool{}}
		s := &cluster{address: address, log: projectortest.OpenJournal(t), codec: eventstore.NewCodec(v)}
		for _, account := range []string{"a", "b"} {
			s.appendEvents(t, "locations-"+account, event.ReferentialOpened{Code: "m"}, siteRow("m", "x", event.SiteCreated, 1))
		}
		i := s.startAllModels(t)
		i.awaitPosition(t, s.appendEvents(t, "locations-a", siteRow("m", "y", event.SiteCreated, 1)))
		v.setLost("a", true)
		at := s.appendEvents(t, "locations-a", siteRow("m", "z", event.SiteCreated, 1))
		s.appendEvents(t, "locations-a", siteRow("m", "z", event.SiteUpdated, 2))
		i.awaitPosition(t, s.appendEvents(t, "locations-b", siteRow("m", "y", event.SiteCreated, 1)))
		if got := i.requireStopped(t, table.LocationsModel, "a"); got.Kind != table.AccountUnreadable || got.Position != int64(at) {
			t.Errorf("got %+v", got)
		}
		i.awaitRunning(t, table.AuditModel, "a") // that model reads no personal field
		if sites, _, err := i.accountRows(t, "b"); err != nil || len(sites) != 2 {
			t.Errorf("got %v, %v of the other account", siteNames(sites), err)
		}
		all, err := i.StoppedAccounts(t.Context())
		if err != nil || len(all) != 1 || all[0].Account != "a" || all[0].Kind != table.AccountUnreadable {
			t.Errorf("got %+v, %v", all, err)
		}
		if err := i.Refold(t.Context(), "a"); err != nil { // too early
			t.Fatal(err)
		}
		until(t, "it is stopped again", func() bool { return i.requireStopped(t, table.LocationsModel, "a").Kind == table.AccountUnreadable })
		v.setLost("a", false)
		if err := i.Refold(t.Context(), "a", "b", "nobody"); err != nil {
			t.Fatal(err)
		}
		i.awaitRunning(t, table.LocationsModel, "a")
		sites, _, _ := i.accountRows(t, "a")
		if diff := cmp.Diff([]string{"x v1", "y v1", "z v2"}, siteNames(sites)); diff != "" {
			t.Error(diff)
		}
	})
}

// TestEmptyCommitIsSkippedAndLoggedOnce: earlier releases left commits without a sync id.
func TestEmptyCommitIsSkippedAndLoggedOnce(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := newCluster(t, address)
		s.appendEvents(t, "locations-a", event.ReferentialOpened{Code: "m"}, siteRow("m", "x", event.SiteCreated, 1))
		at := s.appendEvents(t, "locations-a", event.SyncCommitted{SiteWriteSummary: event.SiteWriteSummary{Referential: "m", Action: "sync", Created: 10_000, ActiveAfter: 10_000, IdempotencyKeyHash: "k", RequestHash: "r"}})
		s.appendEvents(t, "locations-a", event.SyncCommitted{SiteWriteSummary: event.SiteWriteSummary{Referential: "none"}})
		end := s.appendEvents(t, "locations-a", siteRow("m", "y", event.SiteCreated, 1))
		registry, err := sqldb.OpenRegistry(address)
		if err != nil {
			t.Fatal(err)
		}
		p := projector.New(s.log, s.codec, registry, audit.Model, locations.Model(true))
		var logged bytes.Buffer
		p.Log = slog.New(slog.NewTextHandler(&logged, nil))
		i := s.runProjector(t, p, registry)
		i.awaitPosition(t, end)
		sites, referentials, err := i.accountRows(t, "a")
		if err != nil || len(sites) != 2 || referentials[0].ActiveSites != 1 {
			t.Errorf("got %v, %+v, %v", siteNames(sites), referentials, err)
		}
		all, err := i.StoppedAccounts(t.Context())
		if err != nil || len(all) != 2 || all[0].IsStopped() || all[0].FirstEmptyCommit != int64(at) {
			t.Errorf("got %+v, %v", all, err)
		}
		i.checkEqualsRebuilt(t, s, "a")
		i.stop()
		if n := strings.Count(logged.String(), "without a sync id"); n != 2 {
			t.Errorf("logged %d times, want once of each:\n%s", n, &logged)
		}
	})
}

// TestRefoldLosesNothingThatHappensMeanwhile: while one correction follows another, this account and others continue.
func TestRefoldLosesNothingThatHappensMeanwhile(t *testing.T) {
	t.Parallel()
	const changes, corrections = 300, 20
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := newCluster(t, address)
		for _, account := range []string{"a", "b"} {
			s.appendEvents(t, "locations-"+account, event.ReferentialOpened{Code: "m"})
		}
		first, second := s.startAllModels(t), s.startAllModels(t)
		var last atomic.Uint64
		var writers sync.WaitGroup
		for _, account := range []string{"a", "b"} {
			writers.Go(func() {
				for n := range changes {
					op, version := event.SiteCreated, int64(1)
					if n%2 == 1 {
						op, version = event.SiteUpdated, 2
					}
					at := uint64(s.appendEvents(t, "locations-"+account, siteRow("m", fmt.Sprintf("s%03d", n/2), op, version)))
					for was := last.Load(); was < at && !last.CompareAndSwap(was, at); was = last.Load() {
					}
				}
			})
		}
		var end eventstore.Position
		for range corrections {
			at := s.appendRaw(t, "locations-a", sitesChanged, `{`)
			revision := eventstore.Revision(-1)
			for r, err := range s.log.ReadStream(t.Context(), "locations-a", 0, eventstore.Forward) {
				if err != nil {
					t.Fatal(err)
				}
				if r.Position == at {
					revision = r.Revision
				}
			}
			end = s.appendEvents(t, "locations-a", event.LocationsEventVoided{EventVoided: event.EventVoided{Revision: int64(revision)}})
		}
		writers.Wait()
		first.awaitPosition(t, max(end, eventstore.Position(last.Load())))
		for _, i := range []*instance{first, second} {
			i.awaitRunning(t, table.LocationsModel, "a")
			i.awaitRunning(t, table.AuditModel, "a")
			for _, account := range []string{"a", "b"} {
				sites, _, err := i.accountRows(t, account)
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
		first.checkEqualsRebuilt(t, s, "a")
	})
}

func TestKnownEventTypeWithoutAHandlerIsSkipped(t *testing.T) {
	t.Parallel()
	onArchived := projector.On(func(*projector.Changeset, event.ReferentialArchived, projector.Record) {})
	m := projector.Model{ReadModel: table.ReadModel{Name: "archived", Version: 1}, Handlers: []projector.EventHandler{onArchived}}
	s := newCluster(t, t.TempDir())
	i := s.startInstance(t, m)
	i.awaitPosition(t, s.appendEvents(t, "locations-a", event.ReferentialOpened{Code: "m"}))
	i.awaitPosition(t, s.appendRaw(t, "locations-a", sitesChanged, `{`)) // no handler wants it, so nothing decodes it
}
