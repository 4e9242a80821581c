package sqldb_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/schemas/table"
)

// scrubFixture is a serving generation of sites on Postgres with rows of two accounts, of which one holds the mark.
type scrubFixture struct {
	address    string
	registry   *sqldb.Registry
	db         *sqldb.DB
	generation sqldb.Generation
}

const erasedMark = "ERASEDMARK"

// longText is long enough to be kept outside its row, and cannot be compressed.
func longText() string {
	text := make([]byte, 4000)
	rand.Read(text)
	return hex.EncodeToString(text)
}

func newScrubFixture(t *testing.T) *scrubFixture {
	t.Helper()
	s := &scrubFixture{address: sqldbtest.NewPostgresDatabase(t)}
	var promote func()
	s.registry, s.db, promote = sqldbtest.NewGeneration(t, s.address, table.LocationsModel)
	promote()
	var err error
	if s.generation, err = s.registry.ServingGeneration(t.Context(), table.LocationsModel); err != nil {
		t.Fatal(err)
	}
	s.writeRows(t)
	return s
}

// writeRows writes sites of the accounts "erased" and "kept".
func (s *scrubFixture) writeRows(t *testing.T) {
	t.Helper()
	var sites []table.Site
	for n := range 300 {
		for account, mark := range map[string]string{"erased": erasedMark, "kept": "kept"} {
			sites = append(sites, table.Site{ID: table.SiteID(account, "m", fmt.Sprint(n)), Account: account, Referential: "m", ExternalID: fmt.Sprint(n), Active: true,
				Content: mark + longText()[:8*(n%2)*900] + mark})
		}
	}
	referentials := []table.Referential{{ID: "erased/m", Account: "erased", Code: "m", Name: erasedMark}, {ID: "kept/m", Account: "kept", Code: "m", Name: "kept"}}
	s.inTx(t, func(tx *sqldb.Tx) error {
		return errors.Join(sqldb.Upsert(t.Context(), tx, table.Sites, sites), sqldb.Upsert(t.Context(), tx, table.Referentials, referentials))
	})
	if _, err := s.db.Exec(t.Context(), "analyze {site}"); err != nil {
		t.Fatal(err)
	}
}

func (s *scrubFixture) inTx(t *testing.T, f func(*sqldb.Tx) error) {
	t.Helper()
	if err := s.db.RunInTx(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

// erase deletes the rows of the account "erased".
func (s *scrubFixture) erase(t *testing.T) {
	t.Helper()
	s.inTx(t, func(tx *sqldb.Tx) error {
		_, err := tx.Exec(t.Context(), "delete from {site} where account = 'erased'")
		_, renameErr := tx.Exec(t.Context(), "update {referential} set name = '' where account = 'erased'")
		return errors.Join(err, renameErr, tx.RequireScrub(t.Context()))
	})
}

func (s *scrubFixture) scrub(ctx context.Context) (time.Duration, error) {
	return s.registry.Scrub(ctx, table.LocationsModel, s.generation, s.db)
}

// texts are the results of a query of one column of texts, in order.
func (s *scrubFixture) texts(t *testing.T, query string) (all []string) {
	t.Helper()
	rows, err := s.db.Query(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

const (
	// relationNames are the tables, indexes and keys of the generation, with the columns of the indexes.
	relationNames = "select tablename || ' ' || indexname || ' ' || indexdef from pg_indexes where schemaname like 'places_v%' order by 1"
	keptSites     = "select id || content from {site} order by id"
)

func TestAScrubTakesWhatWasErasedOutOfTheFilesOfPostgresAndLeavesTheRest(t *testing.T) {
	t.Parallel()
	s := newScrubFixture(t)
	if later, err := s.scrub(t.Context()); later != 0 || err != nil {
		t.Errorf("nothing was erased: got %s, %v", later, err)
	}
	names, relations := s.texts(t, relationNames), "select relfilenode::text from pg_class where relname = 'site'"
	s.erase(t)
	if _, err := s.db.Exec(t.Context(), "vacuum {site}"); err != nil {
		t.Fatal(err)
	}
	if found := sqldbtest.FilesHolding(t, s.address, erasedMark); len(found) == 0 {
		t.Fatal("no file holds what was deleted: the test shows nothing")
	}
	sites, file := s.texts(t, keptSites), s.texts(t, relations)
	if later, err := s.scrub(t.Context()); later != 0 || err != nil {
		t.Fatalf("got %s, %v", later, err)
	}
	if found := sqldbtest.FilesHolding(t, s.address, erasedMark); len(found) > 0 {
		t.Errorf("%q hold what was erased", found)
	}
	for what, diff := range map[string]string{
		"sites":         cmp.Diff(sites, s.texts(t, keptSites)),
		"relations":     cmp.Diff(names, s.texts(t, relationNames)),
		"view of sites": cmp.Diff([]string{"300"}, s.texts(t, "select count(*)::text from lieudit.sites")),
		"view of names": cmp.Diff([]string{"", "kept"}, s.texts(t, "select name from lieudit.referentials order by name")),
	} {
		if diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	if cmp.Equal(file, s.texts(t, relations)) {
		t.Error("the table is in the same file as before")
	}
	s.writeRows(t)
	s.erase(t)
	if later, err := s.scrub(t.Context()); later <= 59*time.Minute || later > time.Hour || err != nil {
		t.Errorf("right after a scrub: got %s, %v", later, err)
	}
	s.registry.ScrubInterval = time.Microsecond
	if later, err := s.scrub(t.Context()); later != 0 || err != nil {
		t.Errorf("the second scrub: got %s, %v", later, err)
	}
	if found := sqldbtest.FilesHolding(t, s.address, erasedMark); len(found) > 0 {
		t.Errorf("after the second scrub %q hold what was erased", found)
	}
	if diff := cmp.Diff(names, s.texts(t, relationNames)); diff != "" {
		t.Errorf("after the second scrub: %s", diff)
	}
}

func TestAScrubThatFailsChangesNothingAndIsDueAsBefore(t *testing.T) {
	t.Parallel()
	s := newScrubFixture(t)
	s.erase(t)
	names, sites := s.texts(t, relationNames), s.texts(t, keptSites)
	view := "create view own_view as select * from {site}" // which keeps the old table from being dropped
	if _, err := s.db.Exec(t.Context(), view); err != nil {
		t.Fatal(err)
	}
	if _, err := s.scrub(t.Context()); err == nil || !strings.Contains(err.Error(), "own_view") && !strings.Contains(err.Error(), "depend") {
		t.Errorf("got %v, want an error that names the obstacle", err)
	}
	if diff := cmp.Diff(names, s.texts(t, relationNames)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(sites, s.texts(t, keptSites)); diff != "" {
		t.Error(diff)
	}
	if _, err := s.db.Exec(t.Context(), "drop view own_view"); err != nil {
		t.Fatal(err)
	}
	if later, err := s.scrub(t.Context()); later != 0 || err != nil {
		t.Errorf("without the obstacle: got %s, %v", later, err)
	}
	if found := sqldbtest.FilesHolding(t, s.address, erasedMark); len(found) > 0 {
		t.Errorf("%q hold what was erased", found)
	}
}

// beginTx begins a transaction of somebody else in the database.
func (s *scrubFixture) beginTx(t *testing.T, first string) *sql.Tx {
	t.Helper()
	db, err := sql.Open("pgx", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), strings.ReplaceAll(first, "{site}", strings.ReplaceAll(s.generation.Name, "-", "_")+".site")); err != nil {
		t.Fatal(err)
	}
	return tx
}

// startScrub starts a scrub that must succeed. wait returns when it has.
func (s *scrubFixture) startScrub(t *testing.T) (wait func()) {
	t.Helper()
	var scrubbing sync.WaitGroup
	scrubbing.Go(func() {
		if later, err := s.scrub(t.Context()); later != 0 || err != nil {
			t.Errorf("got %s, %v", later, err)
		}
	})
	return scrubbing.Wait
}

// awaitLock waits until pg_locks has a row with the condition.
func (s *scrubFixture) awaitLock(t *testing.T, what, condition string) {
	t.Helper()
	deadlinetest.WaitUntil(t, deadlinetest.DefaultLimit, what, func() bool {
		return s.texts(t, "select count(*)::text from pg_locks where database = (select oid from pg_database where datname = current_database()) and "+condition)[0] != "0"
	})
}

func TestReadsGoOnWhileAScrubWaitsForOneThatBeganMeanwhile(t *testing.T) {
	t.Parallel()
	s := newScrubFixture(t)
	s.erase(t)
	writer := s.beginTx(t, "delete from {site} where id = 'none'")
	wait := s.startScrub(t)
	s.awaitLock(t, "the scrub waits for a writer", "mode = 'ShareRowExclusiveLock' and not granted")
	long := s.beginTx(t, "select count(*) from {site}")
	if err := writer.Rollback(); err != nil {
		t.Fatal(err)
	}
	s.awaitLock(t, "the scrub waits for a reader", "mode = 'AccessExclusiveLock' and not granted and relation::regclass::text like '%site'")
	for range 5 {
		if got := s.texts(t, "select count(*)::text from {site}"); got[0] != "300" {
			t.Errorf("a read meanwhile: got %s sites", got[0])
		}
	}
	if err := long.Rollback(); err != nil {
		t.Fatal(err)
	}
	wait()
	if found := sqldbtest.FilesHolding(t, s.address, erasedMark); len(found) > 0 {
		t.Errorf("%q hold what was erased", found)
	}
}

// A dump of the database holds all tables for as long as it takes: a scrub that waits for its end with the tables locked would
// keep out all who write.
func TestWritesGoOnWhileAScrubWaitsForALongRead(t *testing.T) {
	t.Parallel()
	s := newScrubFixture(t)
	s.erase(t)
	long := s.beginTx(t, "select count(*) from {site}")
	wait := s.startScrub(t)
	s.awaitLock(t, "the scrub has begun", "locktype = 'advisory'")
	for n := range 100 {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		_, err := s.db.Exec(ctx, "update {site} set position = ? where account = 'kept' and external_id = '1'", n)
		cancel()
		if err != nil {
			t.Fatalf("write %d meanwhile: %v", n, err)
		}
	}
	if err := long.Rollback(); err != nil {
		t.Fatal(err)
	}
	wait()
	if found := sqldbtest.FilesHolding(t, s.address, erasedMark); len(found) > 0 {
		t.Errorf("%q hold what was erased", found)
	}
}

func TestInstancesThatScrubAtOnceDoNotDisturbEachOther(t *testing.T) {
	t.Parallel()
	s := newScrubFixture(t)
	s.erase(t)
	var instances sync.WaitGroup
	for range 2 {
		other, err := sqldb.OpenRegistry(s.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { other.Close() })
		db, release, err := other.OpenGeneration(t.Context(), s.generation)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(release)
		instances.Go(func() {
			if later, err := other.Scrub(t.Context(), table.LocationsModel, s.generation, db); later != 0 || err != nil {
				t.Errorf("got %s, %v", later, err)
			}
		})
	}
	instances.Wait()
	if found := sqldbtest.FilesHolding(t, s.address, erasedMark); len(found) > 0 {
		t.Errorf("%q hold what was erased", found)
	}
	if got := s.texts(t, "select count(*)::text from lieudit.sites"); got[0] != "300" {
		t.Errorf("got %s sites", got[0])
	}
}
