package peers

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"crypto/sha256"

	"lieudit/cmd/lieudit/releases"
	"lieudit/commands"
	"lieudit/commands/deployment"
	"lieudit/eventstore"
	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/journal"
	"lieudit/queries/mappedfile"
	"lieudit/schemas/event"
)

// note is the data of the tests: a date, and bytes.
type note struct {
	*mappedfile.File
	releases.Label
}

func noteFormat() mappedfile.Format {
	return mappedfile.Format{
		Magic: "lieudit--notes--", FirstVersion: 1, SectionCounts: []int{2}, CheckedAtOpen: 1 << 10,
		ErrOther: fmt.Errorf("not a note"), ErrDamaged: fmt.Errorf("damaged"),
	}
}

func openNote(path string) (note, error) {
	file, err := mappedfile.Open(path, noteFormat())
	if err != nil {
		return note{}, err
	}
	return note{file, releases.Label{Date: string(file.Section(1))}}, nil
}

// instance is a follower of notes in a folder of its own, with a watcher that serves them and a server for the others.
type instance struct {
	t        *testing.T
	folder   releases.Folder[note]
	follower *Follower
	server   *httptest.Server
	handler  atomic.Pointer[http.Handler] // of the server
	stop     func()
	served   *releases.Watcher[note]
	isDemo   atomic.Bool // it was told to withdraw its demo
}

func newLog(t *testing.T) eventstore.Store {
	t.Helper()
	log, err := journal.Open(t.TempDir(), journal.Options{SegmentSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	return log
}

// raise gives a log the format of releases.
func raise(t *testing.T, log eventstore.Store) eventstore.Store {
	t.Helper()
	d := deployment.New(log, eventstore.NewCodec(nil), "v1")
	if err := d.RaiseFormat(t.Context(), commands.Metadata{Actor: "system"}, event.HighestFormat); err != nil {
		t.Fatal(err)
	}
	return log
}

// newInstance makes an instance that does not run yet. change may be nil.
func newInstance(t *testing.T, log eventstore.Store, id string, change func(*Config)) *instance {
	t.Helper()
	return newInstanceIn(t, t.TempDir(), log, id, change)
}

// newInstanceIn is newInstance with a data folder.
func newInstanceIn(t *testing.T, data string, log eventstore.Store, id string, change func(*Config)) *instance {
	t.Helper()
	i := &instance{t: t}
	i.folder = releases.FolderIn(data, releases.Kind[note]{
		Noun: "note", Contents: "words", FolderName: "notes", Extension: ".note", LastRealFile: "last-note", RepairAdvice: "write it again",
		HasMagic: func(head []byte) bool { return strings.HasPrefix(string(head), "lieudit--notes--") }, Versions: func() (int, int) { return 1, 1 },
		Open: openNote, File: func(n note) *mappedfile.File { return n.File }, Describe: func(n note) releases.Label { return n.Label },
	})
	i.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*i.handler.Load()).ServeHTTP(w, r) }))
	t.Cleanup(i.server.Close)
	logger := slog.New(slog.NewTextHandler(t.Output(), nil)).With("instance", id)
	i.served = releases.NewWatcher(i.folder, logger, func(_ context.Context, n note) { t.Cleanup(func() { n.Close() }) }, func(error) {})
	c := Config{
		Deployment: deployment.New(log, eventstore.NewCodec(nil), "v1"), Instance: id, Program: "v1", URL: i.server.URL, Now: time.Now, Log: logger,
		AskInterval: 5 * time.Millisecond, AckTimeout: deadlinetest.Scale(time.Second),
		Data: []Data{{
			Kind: VintageKind, Folder: i.folder, Served: i.served.ServedName, Problem: i.served.Problem,
			Withdraw: func(error) { i.isDemo.Store(true) },
		}},
	}
	if change != nil {
		change(&c)
	}
	i.follower = New(c)
	i.giveBy(i.follower.Handler(http.NotFoundHandler()))
	return i
}

// giveBy has a handler answer the other instances.
func (i *instance) giveBy(h http.Handler) { i.handler.Store(&h) }

// run starts the instance, which ends with the test or by stop.
func (i *instance) run() *instance {
	i.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	i.served.Load(ctx)
	ended := make(chan error, 2)
	go func() { ended <- i.served.Run(ctx) }()
	go func() { ended <- i.follower.Run(ctx) }()
	isStopped := atomic.Bool{}
	i.stop = func() {
		if isStopped.Swap(true) {
			return
		}
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				i.t.Error(err)
			}
		}
	}
	i.t.Cleanup(i.stop)
	return i
}

// importNote imports a note of a date with bytes of its own, and returns its sum.
func (i *instance) importNote(date string, size int) (sum string) {
	i.t.Helper()
	name, err := i.folder.Add(i.t.Context(), time.Now(), func(path, _ string) (releases.Label, error) {
		_, err := mappedfile.Build(path, noteFormat(), func(_ string, w *mappedfile.Writer) error {
			w.Append(1, []byte(date))
			w.Append(2, []byte(strings.Repeat(date, size/len(date))))
			return w.Err()
		})
		return releases.Label{Date: date}, err
	})
	if err != nil {
		i.t.Fatal(err)
	}
	if sum, err = i.folder.Checksum(name); err != nil {
		i.t.Fatal(err)
	}
	return sum
}

// servedSum is the sum of the file that is served.
func (i *instance) servedSum() string {
	name := i.served.ServedName()
	if name == "" {
		return ""
	}
	sum, err := i.folder.Checksum(name)
	if err != nil {
		return ""
	}
	return sum
}

func waitUntil(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(deadlinetest.Scale(deadlinetest.DefaultLimit)); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still not so: %s", what)
		}
	}
}

// waitReleased waits until the log has some releases.
func (i *instance) waitReleased(count int) {
	i.t.Helper()
	waitUntil(i.t, fmt.Sprintf("%d releases", count), func() bool {
		view := i.follower.fleet.Load()
		return view != nil && len(view.Releases) == count
	})
}

func (i *instance) waitFor(sum string) {
	i.t.Helper()
	waitUntil(i.t, i.follower.Instance+" serves "+sum, func() bool { return i.servedSum() == sum })
}

func TestAnImportReachesAllInstances(t *testing.T) {
	t.Parallel()
	log := raise(t, newLog(t))
	a, b, c := newInstance(t, log, "a", nil).run(), newInstance(t, log, "b", nil).run(), newInstance(t, log, "c", nil).run()
	for turn, at := range []*instance{a, b, a} {
		sum := at.importNote(fmt.Sprintf("2026-0%d", turn+1), 50_000)
		for _, i := range []*instance{a, b, c} {
			i.waitFor(sum)
		}
	}
	waitUntil(t, "all announce what they have", func() bool {
		view := a.follower.fleet.Load()
		return len(view.Releases) == 3 && len(view.Instances) == 3 && len(view.Holders(view.Releases[2])) == 3 && len(view.Holders(view.Releases[1])) == 3
	})
	if entries, err := os.ReadDir(filepath.Join(filepath.Dir(b.folder.Path("x")), "fetching")); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestTheLastOfTwoImportsIsServedEverywhere(t *testing.T) {
	t.Parallel()
	log := raise(t, newLog(t))
	a, b := newInstance(t, log, "a", nil).run(), newInstance(t, log, "b", nil).run()
	for turn := range 3 {
		a.importNote(fmt.Sprintf("2026-0%d-01", turn+1), 1000)
		b.importNote(fmt.Sprintf("2026-0%d-02", turn+1), 1000)
		waitUntil(t, "both serve the last release", func() bool {
			view := a.follower.fleet.Load()
			if view == nil || len(view.Releases) != 2*turn+2 {
				return false
			}
			last := view.Releases[2*turn+1].Sum
			return a.servedSum() == last && b.servedSum() == last
		})
	}
}

func TestTheSameFileTwiceIsOneRelease(t *testing.T) {
	t.Parallel()
	log := raise(t, newLog(t))
	a, b := newInstance(t, log, "a", nil).run(), newInstance(t, log, "b", nil).run()
	sum := a.importNote("2026-01", 1000)
	b.waitFor(sum)
	for _, i := range []*instance{b, a} {
		if again := i.importNote("2026-01", 1000); again != sum {
			t.Fatal("the file is another one")
		}
		waitUntil(t, "it is told", func() bool {
			l, err := i.folder.CurrentFile(releases.Local{})
			return err == nil && !l.IsPending()
		})
	}
	if got := len(a.follower.fleet.Load().Releases); got != 1 {
		t.Errorf("%d releases, want 1", got)
	}
}

func TestAnInstanceThatJoinsWaitsForWhatTheOthersServe(t *testing.T) {
	t.Parallel()
	log := raise(t, newLog(t))
	a := newInstance(t, log, "a", nil).run()
	sum := a.importNote("2026-01", 200_000)
	a.waitReleased(1)
	b := newInstance(t, log, "b", nil)
	if b.follower.CheckJoined() == nil {
		t.Error("it has joined before it has begun")
	}
	b.run()
	waitUntil(t, "it has joined", func() bool {
		served := b.servedSum()
		isJoined := b.follower.CheckJoined() == nil
		if isJoined && served != sum && b.servedSum() != sum {
			t.Error("it has joined and serves something else")
		}
		return isJoined
	})
	if err := b.follower.Check(); err != nil {
		t.Errorf("it serves what the others serve and says %v", err)
	}
}

func TestAnInstanceServesWhatItHasWhereNoHolderRuns(t *testing.T) {
	t.Parallel()
	log := raise(t, newLog(t))
	a, b := newInstance(t, log, "a", nil).run(), newInstance(t, log, "b", nil).run()
	old := a.importNote("2026-01", 1000)
	b.waitFor(old)
	b.stop()
	newer := a.importNote("2026-02", 1000)
	a.waitReleased(2)
	a.stop()
	again := newInstance(t, log, "c", func(c *Config) { c.Data[0].Folder = b.folder })
	again.folder, again.served = b.folder, releases.NewWatcher(b.folder, b.follower.Log, func(_ context.Context, n note) { t.Cleanup(func() { n.Close() }) }, func(error) {})
	again.follower.kinds[0].Served, again.follower.kinds[0].Problem = again.served.ServedName, again.served.Problem
	again.run()
	waitUntil(t, "it has joined and says which release is missing", func() bool {
		err := again.follower.Check()
		return again.follower.CheckJoined() == nil && err != nil && strings.Contains(err.Error(), "no instance that has it runs") && strings.Contains(err.Error(), newer[:12])
	})
	if again.servedSum() != old {
		t.Error("it does not serve what it has")
	}
}

func TestBeforeTheFormatIsRaisedAnImportStaysHereAndIsReleasedAfterwards(t *testing.T) {
	t.Parallel()
	log := newLog(t)
	a, b := newInstance(t, log, "a", nil).run(), newInstance(t, log, "b", nil).run()
	sum := a.importNote("2026-01", 1000)
	waitUntil(t, "it says that it is local", func() bool {
		s, err := a.folder.ReadStanding()
		return err == nil && s.State == releases.StandingLocal && strings.Contains(s.Reason, "upgrade finish")
	})
	if b.servedSum() != "" || b.follower.CheckJoined() != nil {
		t.Error("another instance was told, or does not answer")
	}
	for r, err := range log.ReadStream(t.Context(), "deployment-releases", 0, eventstore.Forward) {
		t.Fatalf("the log has %s, %v, want nothing that an older program lacks", r.Type, err)
	}
	raise(t, log)
	b.waitFor(sum)
}

func TestAnInstanceWithoutAnAddressKeepsItsImportsAndTakesOverThoseOfOthers(t *testing.T) {
	t.Parallel()
	log := raise(t, newLog(t))
	a, b := newInstance(t, log, "a", nil).run(), newInstance(t, log, "b", func(c *Config) { c.URL = "" }).run()
	b.waitFor(a.importNote("2026-01", 1000))
	own := b.importNote("2026-02", 1000)
	b.waitFor(own)
	waitUntil(t, "it says why", func() bool {
		s, err := b.folder.ReadStanding()
		return err == nil && s.State == releases.StandingLocal && strings.Contains(s.Reason, "--peer-url")
	})
	if a.servedSum() == own || len(a.follower.fleet.Load().Releases) != 1 {
		t.Error("it was released")
	}
	if err := b.follower.Check(); err == nil || !strings.Contains(err.Error(), "--peer-url") {
		t.Errorf("readiness says %v", err)
	}

	// It sees what the others release, and says why it does not serve that. Nobody takes it off the list again and again.
	a.importNote("2026-03", 1000)
	waitUntil(t, "it is named", func() bool {
		s, err := a.folder.ReadStanding()
		return err == nil && s.State == releases.StandingReleased && len(s.Behind()) == 1 && strings.Contains(s.Behind()[0].Problem, "--peer-url")
	})
	time.Sleep(2 * a.follower.AckTimeout)
	events := 0
	for _, err := range log.ReadStream(t.Context(), "deployment-releases", 0, eventstore.Forward) {
		if events++; err != nil {
			t.Fatal(err)
		}
	}
	if events > 20 {
		t.Errorf("the log has %d events of two instances and two releases", events)
	}
}

// The holder dies in the middle of a transfer; another one has the file too.
func TestATransferGoesOnAtAnotherHolder(t *testing.T) {
	t.Parallel()
	log := raise(t, newLog(t))
	a, b := newInstance(t, log, "a", nil).run(), newInstance(t, log, "b", nil).run()
	sum := a.importNote("2026-01", 100_000)
	b.waitFor(sum)
	waitUntil(t, "both are holders", func() bool {
		view := b.follower.fleet.Load()
		return len(view.Releases) == 1 && len(view.Holders(view.Releases[0])) == 2
	})
	var sent, asked atomic.Int64
	for _, i := range []*instance{a, b} {
		honest := i.follower.Handler(http.NotFoundHandler())
		i.giveBy(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if asked.Add(1) == 1 { // the first one that is asked
				honest.ServeHTTP(&cuttingWriter{w, &sent, 60_000}, r)
				return
			}
			honest.ServeHTTP(&cuttingWriter{w, &sent, 1 << 30}, r)
		}))
	}
	c := newInstance(t, log, "c", nil).run()
	c.waitFor(sum)
	if got := sent.Load(); got > 110_000 {
		t.Errorf("%d bytes were sent of a file of 100 kB: it began anew", got)
	}
}

// silentLog answers nothing while it is silent.
type silentLog struct {
	eventstore.Store
	isSilent atomic.Bool
}

func (s *silentLog) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) (eventstore.AppendResult, error) {
	if s.isSilent.Load() {
		return eventstore.AppendResult{}, eventstore.ErrUnavailable
	}
	return s.Store.Append(ctx, stream, expected, events)
}

func (s *silentLog) ReadStream(ctx context.Context, stream string, from eventstore.Revision, dir eventstore.Direction) iter.Seq2[eventstore.RecordedEvent, error] {
	if s.isSilent.Load() {
		return func(yield func(eventstore.RecordedEvent, error) bool) {
			yield(eventstore.RecordedEvent{}, eventstore.ErrUnavailable)
		}
	}
	return s.Store.ReadStream(ctx, stream, from, dir)
}

func TestAnImportDuringASilenceOfTheLogIsReleasedAfterIt(t *testing.T) {
	t.Parallel()
	log := &silentLog{Store: raise(t, newLog(t))}
	a, b := newInstance(t, log, "a", nil).run(), newInstance(t, log, "b", nil).run()
	b.waitFor(a.importNote("2026-01", 1000))
	log.isSilent.Store(true)
	sum := a.importNote("2026-02", 1000)
	a.waitFor(sum)
	waitUntil(t, "it says what it waits for", func() bool {
		s, err := a.folder.ReadStanding()
		return err == nil && s.State == releases.StandingPending && strings.Contains(s.Reason, "the log does not answer")
	})
	log.isSilent.Store(false)
	b.waitFor(sum)
}

// The clocks of two machines are hours apart: nothing compares them.
func TestClocksDoNotMatter(t *testing.T) {
	t.Parallel()
	log := raise(t, newLog(t))
	ahead := func(d time.Duration) func(*Config) {
		return func(c *Config) { c.Now = func() time.Time { return time.Now().Add(d) } }
	}
	a, b := newInstance(t, log, "a", ahead(time.Hour)).run(), newInstance(t, log, "b", ahead(-time.Hour)).run()
	for turn, at := range []*instance{a, b, a} {
		sum := at.importNote(fmt.Sprintf("2026-0%d", 3-turn), 1000) // of an earlier date each time
		a.waitFor(sum)
		b.waitFor(sum)
	}
}

func TestTheReleaseBeforeIsServedAgainEverywhere(t *testing.T) {
	t.Parallel()
	log := raise(t, newLog(t))
	a, b := newInstance(t, log, "a", nil).run(), newInstance(t, log, "b", nil).run()
	first := a.importNote("2026-01", 1000)
	b.waitFor(first)
	b.waitFor(a.importNote("2026-02", 1000))
	b.giveBy(http.NotFoundHandler()) // nothing needs to be fetched
	a.giveBy(http.NotFoundHandler())
	if _, err := b.folder.Serve(t.Context(), "0123", time.Now()); err == nil || !strings.Contains(err.Error(), first) {
		t.Errorf("a sum that nothing has: %v, want an error that lists those that are there", err)
	}
	if _, err := b.folder.Serve(t.Context(), first[:10], time.Now()); err != nil {
		t.Fatal(err)
	}
	a.waitFor(first)
	b.waitFor(first)
	if got := len(a.follower.fleet.Load().Releases); got != 3 {
		t.Errorf("%d releases, want 3", got)
	}
}

// A transfer is cut again and again: each attempt continues where the last one stopped.
func TestACutTransferGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	log := raise(t, newLog(t))
	a, b := newInstance(t, log, "a", nil).run(), newInstance(t, log, "b", nil)
	var sent atomic.Int64
	honest := a.follower.Handler(http.NotFoundHandler())
	const cut = 40_000
	a.giveBy(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		honest.ServeHTTP(&cuttingWriter{w, &sent, cut}, r)
	}))
	sum := a.importNote("2026-01", 100_000)
	a.waitReleased(1)
	b.run()
	b.waitFor(sum)
	if got := sent.Load(); got > 110_000 {
		t.Errorf("%d bytes were sent of a file of 100 kB: it began anew", got)
	}
}

// cuttingWriter ends a connection after some bytes.
type cuttingWriter struct {
	http.ResponseWriter
	sent *atomic.Int64
	left int
}

func (c *cuttingWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *cuttingWriter) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p[:min(len(p), c.left)])
	c.sent.Add(int64(n))
	if c.left -= n; c.left == 0 {
		http.NewResponseController(c.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, err
}

// One holder gives other bytes of the same length; the honest one is asked next.
func TestAFileWithAnotherSumIsThrownAway(t *testing.T) {
	t.Parallel()
	log := raise(t, newLog(t))
	a, b := newInstance(t, log, "a", nil).run(), newInstance(t, log, "b", nil).run()
	sum := a.importNote("2026-01", 50_000)
	b.waitFor(sum)
	waitUntil(t, "both are holders", func() bool {
		view := b.follower.fleet.Load()
		return len(view.Releases) == 1 && len(view.Holders(view.Releases[0])) == 2
	})
	var asked atomic.Int64
	hostile := a
	if b.follower.fleet.Load().Holders(b.follower.fleet.Load().Releases[0])[0].Instance == "b" { // the one that is asked first
		hostile = b
	}
	hostile.giveBy(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		io.Copy(w, io.LimitReader(zeros{}, b.follower.fleet.Load().Releases[0].Bytes))
	}))
	c := newInstance(t, log, "c", nil).run()
	c.waitFor(sum)
	if asked.Load() == 0 {
		t.Error("the hostile one was not asked")
	}
}

// zeros reads zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestOnlyTheSecretOfAReleaseOpensItsFile(t *testing.T) {
	t.Parallel()
	log := raise(t, newLog(t))
	a := newInstance(t, log, "a", nil).run()
	sum := a.importNote("2026-01", 1000)
	a.waitReleased(1)
	secret := a.follower.fleet.Load().Releases[0].Secret
	other := hex.EncodeToString(make([]byte, sha256.Size))
	for _, c := range []struct {
		method, path, authorization string
		want                        int
	}{
		{"GET", "vintage/" + sum, "Bearer " + secret, 200},
		{"GET", "vintage/" + sum, "", 404},
		{"GET", "vintage/" + sum, secret, 404},
		{"GET", "vintage/" + sum, "Bearer ", 404},
		{"GET", "vintage/" + sum, "Bearer " + secret[:len(secret)-1], 404},
		{"GET", "vintage/" + sum, "Bearer " + secret + "0", 404},
		{"GET", "vintage/" + sum, "Bearer " + other, 404},
		{"GET", "vintage/" + other, "Bearer " + secret, 404},
		{"GET", "vintage/" + other, "Bearer " + a.follower.dummy, 404},
		{"GET", "network/" + sum, "Bearer " + secret, 404},
		{"GET", "vintage/../vintage/" + sum, "Bearer " + secret, 404},
		{"GET", "vintage/" + sum + "/..", "Bearer " + secret, 404},
		{"GET", "", "Bearer " + secret, 404},
		{"POST", "vintage/" + sum, "Bearer " + secret, 404},
		{"DELETE", "vintage/" + sum, "Bearer " + secret, 404},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, a.server.URL+pathPrefix+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.URL.Opaque = "//" + req.URL.Host + pathPrefix + c.path // as it stands
		req.Header.Set("Authorization", c.authorization)
		resp, err := newClient().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s %s with %q: %d, want %d", c.method, c.path, c.authorization, resp.StatusCode, c.want)
		}
	}
}

func TestAHolderGivesToOneAtATime(t *testing.T) {
	t.Parallel()
	log := raise(t, newLog(t))
	a := newInstance(t, log, "a", nil).run()
	sum := a.importNote("2026-01", 1000)
	a.waitReleased(1)
	a.follower.slot <- struct{}{} // another one fetches
	b := newInstance(t, log, "b", nil).run()
	waitUntil(t, "it waits", func() bool {
		err := b.follower.CheckJoined()
		return err != nil && strings.Contains(err.Error(), "being fetched")
	})
	<-a.follower.slot
	b.waitFor(sum)
}

func TestAnInstanceThatWasKilledIsTakenOffTheListAndOneThatLivesComesBack(t *testing.T) {
	t.Parallel()
	log := raise(t, newLog(t))
	a, b := newInstance(t, log, "a", nil).run(), newInstance(t, log, "b", nil).run()
	b.waitFor(a.importNote("2026-01", 1000))
	d := deployment.New(log, eventstore.NewCodec(nil), "v1")
	gone := event.InstanceAnnounced{Instance: "killed", Host: "elsewhere", URL: "http://127.0.0.1:1", Data: []event.AnnouncedData{{Kind: VintageKind}}}
	if err := d.AnnounceInstance(t.Context(), commands.Metadata{Actor: "system"}, gone); err != nil {
		t.Fatal(err)
	}
	sum := a.importNote("2026-02", 1000)
	b.waitFor(sum)
	waitUntil(t, "the list is right", func() bool {
		view := a.follower.fleet.Load()
		_, isListed := view.Of("killed", VintageKind)
		return !isListed && len(view.Instances) == 2
	})
	if err := d.RemoveInstance(t.Context(), commands.Metadata{Actor: "system"}, "b", true); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "it has announced itself again", func() bool {
		_, isListed := a.follower.fleet.Load().Of("b", VintageKind)
		return isListed
	})
}

// A program that opens an older format alone says so, and continues with what it has.
func TestAFormatThatAnInstanceDoesNotOpenIsNamed(t *testing.T) {
	t.Parallel()
	log := raise(t, newLog(t))
	a, b := newInstance(t, log, "a", nil).run(), newInstance(t, log, "b", nil).run()
	old := a.importNote("2026-01", 1000)
	b.waitFor(old)
	later := event.DataReleased{Kind: VintageKind, Name: "2026-02-9", Date: "2026-02", Sum: strings.Repeat("ab", 32), Bytes: 9, Format: 7, Secret: "s", Instance: "a"}
	if err := a.follower.Deployment.ReleaseData(t.Context(), commands.Metadata{Actor: "system"}, later); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "it says which format it opens", func() bool {
		err := b.follower.Check()
		d, _ := a.follower.fleet.Load().Of("b", VintageKind)
		return err != nil && strings.Contains(err.Error(), "has format 7, and this program opens 1 to 1") && d.Follows == later.Sum && d.Problem != ""
	})
	if b.servedSum() != old {
		t.Error("it does not go on with what it has")
	}
}

// The name of a release never leaves the folder.
func TestANameThatIsAPathIsRefused(t *testing.T) {
	t.Parallel()
	log := raise(t, newLog(t))
	a := newInstance(t, log, "a", nil).run()
	hostile := event.DataReleased{Kind: VintageKind, Name: "../../x", Date: "2026-02", Sum: strings.Repeat("ab", 32), Bytes: 9, Format: 1, Secret: "s", Instance: "b"}
	if err := a.follower.Deployment.ReleaseData(t.Context(), commands.Metadata{Actor: "system"}, hostile); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "it is refused", func() bool {
		err := a.follower.Check()
		return err != nil && strings.Contains(err.Error(), "is not the name of a file")
	})
}

func TestADemoIsNotServedOnceSomethingIsReleased(t *testing.T) {
	t.Parallel()
	log := raise(t, newLog(t))
	b := newInstance(t, log, "b", nil)
	b.importNote(releases.DemoDate, 1000)
	b.run()
	waitUntil(t, "the demo is served", func() bool { return b.follower.CheckJoined() == nil && b.served.ServedName() != "" })
	lost := event.DataReleased{Kind: VintageKind, Name: "2026-02-9", Date: "2026-02", Sum: strings.Repeat("ab", 32), Bytes: 9, Format: 1, Secret: "s", Instance: "a"}
	if err := b.follower.Deployment.ReleaseData(t.Context(), commands.Metadata{Actor: "system"}, lost); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "it is withdrawn", func() bool { return b.isDemo.Load() })
}
