package sqldb_test

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/schemas/table"
)

var seen = table.InstantOf(time.Date(2026, 11, 21, 8, 30, 0, 250_000_000, time.UTC))

func model(version int) table.ReadModel {
	def := things.Def
	def.ViewName = "things"
	return table.ReadModel{Name: "stock", Version: version, Tables: []table.Def{def}}
}

func openRegistry(t *testing.T, address string) *sqldb.Registry {
	t.Helper()
	s, err := sqldb.OpenRegistry(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// buildServing makes a generation of m with n rows and lets it serve.
func buildServing(t *testing.T, s *sqldb.Registry, m table.ReadModel, n int) sqldb.Generation {
	t.Helper()
	c, err := s.BuildGeneration(t.Context(), m, false)
	if err != nil {
		t.Fatal(err)
	}
	db, release, err := s.OpenGeneration(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	rows := make([]thing, n)
	for i := range rows {
		rows[i] = thing{ID: string(rune('a' + i)), Count: int64(n), Good: true, Seen: seen, Raw: []byte("x")}
	}
	upsert(t, db, rows)
	if err := s.PromoteGeneration(t.Context(), m, c); err != nil {
		t.Fatal(err)
	}
	return c
}

func count(ctx context.Context, db *sqldb.DB) (n int, err error) {
	err = db.QueryRow(ctx, "select count(*) from {thing}").Scan(&n)
	return n, err
}

func prune(t *testing.T, s *sqldb.Registry, models ...table.ReadModel) []string {
	t.Helper()
	names, err := s.Prune(t.Context(), models...)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestNothingIsReadBeforeAGenerationServes(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := openRegistry(t, address)
		if _, err := s.BuildGeneration(t.Context(), model(1), true); err != nil {
			t.Fatal(err)
		}
		err := s.Read(t.Context(), model(1), func(*sqldb.DB) error { return nil })
		if !errors.Is(err, sqldb.ErrNotReady) {
			t.Errorf("got %v, want %v", err, sqldb.ErrNotReady)
		}
	})
}

func TestReadersSeeNoErrorWhileGenerationsAreReplaced(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		writer, reader := openRegistry(t, address), openRegistry(t, address)
		buildServing(t, writer, model(1), 1)
		var readers sync.WaitGroup
		var reads, done atomic.Int64
		for range 4 {
			readers.Go(func() {
				for last := 0; done.Load() == 0; reads.Add(1) {
					err := reader.Read(t.Context(), model(1), func(db *sqldb.DB) error {
						n, err := count(t.Context(), db)
						if err == nil && n < last {
							t.Errorf("got %d rows after %d", n, last)
						}
						last = n
						return err
					})
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		for n := range 6 {
			c := buildServing(t, writer, model(1), n+2)
			waitUntil(t, "the new generation is read", func() bool {
				now, err := reader.ServingGeneration(t.Context(), model(1))
				return err == nil && now.Name == c.Name
			})
			prune(t, writer, model(1))
		}
		done.Store(1)
		readers.Wait()
		generations, err := writer.Generations(t.Context())
		if err != nil || len(generations) > 2 {
			t.Errorf("got %v, %v, want no more than the last two generations", generations, err)
		}
		t.Logf("%d reads", reads.Load())
	})
}

func waitUntil(t *testing.T, what string, reached func() bool) {
	t.Helper()
	deadlinetest.WaitUntil(t, deadlinetest.DefaultLimit, what, reached)
}

func TestPruneDropsOnlyGenerationsThatNobodyUses(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		a, b := openRegistry(t, address), openRegistry(t, address)
		first := buildServing(t, a, model(1), 1)
		_, release, err := b.OpenGeneration(t.Context(), first)
		if err != nil {
			t.Fatal(err)
		}
		second := buildServing(t, a, model(1), 2)
		if got := prune(t, a, model(1)); len(got) != 0 {
			t.Errorf("dropped %v while another instance uses it", got)
		}
		release()
		if got := prune(t, a, model(1)); !slices.Equal(got, []string{first.Name}) {
			t.Errorf("dropped %v, want %v", got, first.Name)
		}
		if _, _, err := a.OpenGeneration(t.Context(), first); err == nil {
			t.Error("a dropped generation could be opened")
		}
		if third := buildServing(t, a, model(1), 3); third.Number != second.Number+1 {
			t.Errorf("got generation %d after %d", third.Number, second.Number)
		}
		assertDropped(t, address, first)
	})
}

// assertDropped fails when anything of a generation is left.
func assertDropped(t *testing.T, address string, c sqldb.Generation) {
	t.Helper()
	if !strings.HasPrefix(address, "postgres") {
		if left, _ := filepath.Glob(filepath.Join(address, c.Name+".db*")); len(left) > 0 {
			t.Errorf("left %v", left)
		}
		return
	}
	db := openRaw(t, address)
	n := -1
	if err := db.QueryRow("select count(*) from information_schema.schemata where schema_name = $1", strings.ReplaceAll(c.Name, "-", "_")).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d schemas left, %v", n, err)
	}
}

// openRaw is the database as people open it, without the registry.
func openRaw(t *testing.T, address string) *sql.DB {
	t.Helper()
	driver := "sqlite"
	if u, err := url.Parse(address); err == nil && strings.HasPrefix(u.Scheme, "postgres") {
		query := u.Query()
		query.Set("default_query_exec_mode", "exec") // so that it goes through a pooler too
		u.RawQuery = query.Encode()
		driver, address = "pgx", u.String()
	}
	db, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func TestVersionsServeBesideEachOther(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		old, young := openRegistry(t, address), openRegistry(t, address)
		first := buildServing(t, old, model(1), 1)
		reads := func(s *sqldb.Registry, version, want int) {
			t.Helper()
			err := s.Read(t.Context(), model(version), func(db *sqldb.DB) error {
				n, err := count(t.Context(), db)
				if n != want {
					t.Errorf("version %d: got %d rows, want %d", version, n, want)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
		reads(old, 1, 1)
		buildServing(t, young, model(2), 2)
		reads(old, 1, 1)
		reads(young, 2, 2)
		if got := prune(t, young, model(2)); len(got) != 0 {
			t.Errorf("dropped %v while an older instance reads it", got)
		}
		if err := old.Close(); err != nil {
			t.Fatal(err)
		}
		if got := prune(t, young, model(2)); !slices.Equal(got, []string{first.Name}) {
			t.Errorf("dropped %v, want %v", got, first.Name)
		}
		reads(young, 2, 2)
	})
}

func TestViewsHaveStableNamesAndReadableTimes(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := openRegistry(t, address)
		place, view := filepath.Join(address, "stock.db"), "things"
		if strings.HasPrefix(address, "postgres") {
			place, view = address, "lieudit.things"
		}
		reordered := model(2) // its view cannot replace that of version 1 in place
		reordered.Tables[0].Columns = slices.Clone(things.Columns)
		slices.Reverse(reordered.Tables[0].Columns[1:])
		for n, m := range []table.ReadModel{model(1), model(1), reordered} { // the names stay while generations come and go
			buildServing(t, s, m, n)
			prune(t, s, m)
			var rows int
			var at string
			if err := openRaw(t, place).QueryRow("select count(*), coalesce(cast(max(seen) as text), '') from "+view).Scan(&rows, &at); err != nil {
				t.Fatal(err)
			}
			if rows != n || n > 0 && !strings.HasPrefix(at, "2026-11-21 08:30:00.25") {
				t.Errorf("got %d rows at %s, want %d at 2026-11-21 08:30:00.25", rows, at, n)
			}
		}
	})
}

func TestRegistryOpensBeforeItsDatabaseIsThere(t *testing.T) {
	t.Parallel()
	s := openRegistry(t, "postgres://nobody@127.0.0.1:1/none?connect_timeout=1")
	if _, err := s.Generations(t.Context()); err == nil {
		t.Error("generations without a database")
	}
	err := s.Read(t.Context(), model(1), func(*sqldb.DB) error { return nil })
	if err == nil || errors.Is(err, sqldb.ErrNotReady) {
		t.Errorf("got %v, want why the database cannot be reached", err)
	}
}

func TestInstancesThatBuildAtOnceMakeOneGeneration(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		registries := make([]*sqldb.Registry, 6)
		names := make([]string, len(registries))
		var instances sync.WaitGroup
		for i := range registries {
			registries[i] = openRegistry(t, address)
			instances.Go(func() {
				c, err := registries[i].BuildGeneration(context.Background(), model(1), true)
				if err != nil {
					t.Error(err)
				}
				names[i] = c.Name
			})
		}
		instances.Wait()
		slices.Sort(names)
		if got := slices.Compact(names); len(got) != 1 {
			t.Errorf("got generations %v, want one", got)
		}
		all, err := registries[0].Generations(t.Context())
		if err != nil || len(all) != 1 {
			t.Errorf("the registry holds %v, %v, want one generation", all, err)
		}
		if files, _ := filepath.Glob(filepath.Join(address, "stock-*.db")); !strings.HasPrefix(address, "postgres") && len(files) != 1 {
			t.Errorf("there are files %v, want one", files)
		}
	})
}

func TestAGenerationIsReadFromTheMomentItServes(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := openRegistry(t, address)
		for n := 1; n <= 3; n++ {
			buildServing(t, s, model(1), n)
			err := s.Read(t.Context(), model(1), func(db *sqldb.DB) error {
				got, err := count(t.Context(), db)
				if got != n {
					t.Errorf("read %d rows, want the %d of the generation that serves", got, n)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
}

func TestAGenerationInUseIsNotDroppedHoweverOftenItIsOpened(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		user, pruner := openRegistry(t, address), openRegistry(t, address)
		old := buildServing(t, user, model(1), 1)
		buildServing(t, user, model(1), 2)
		if err := user.Read(t.Context(), model(1), func(*sqldb.DB) error { return nil }); err != nil { // closes the old one
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var others sync.WaitGroup
		defer others.Wait()
		defer stop()
		for range 3 {
			others.Go(func() {
				for ctx.Err() == nil {
					if _, release, err := user.OpenGeneration(ctx, old); err == nil {
						release()
					}
				}
			})
		}
		for range 40 {
			_, release, err := user.OpenGeneration(t.Context(), old)
			if err != nil {
				t.Fatal(err)
			}
			if got := prune(t, pruner, model(1)); len(got) > 0 {
				t.Fatalf("%v was dropped while it was used", got)
			}
			release()
		}
	})
}
