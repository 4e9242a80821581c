package stranger

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lieudit/cmd/bench/harness"
	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/leveltest"
	"lieudit/schemas/plan"
)

const strangerKey = "stranger"

// fakeService stands in for the service. It misbehaves from the stranger's first request on.
type fakeService struct {
	answer   func(w http.ResponseWriter, isStranger bool) // nil: 200
	memory   int64                                        // of anonymous memory once it is attacked
	isMortal bool                                         // it ends at the stranger's first request

	mu         sync.Mutex
	isAttacked bool
	exited     chan struct{}
	killed     int
	starts     int
}

// start is the start of a run.
func (f *fakeService) start(t *testing.T) func(context.Context) (target, error) {
	return func(context.Context) (target, error) {
		s := httptest.NewServer(f)
		t.Cleanup(s.Close)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.exited, f.isAttacked = make(chan struct{}), false
		f.starts++
		return target{
			address: strings.TrimPrefix(s.URL, "http://"), exited: f.exited, kill: f.kill, anonymousMemory: f.anonymousMemory,
			processorTime: func() (time.Duration, error) { return 0, nil },
		}, nil
	}
}

func (f *fakeService) kill() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.killed++
	close(f.exited)
}

func (f *fakeService) anonymousMemory() (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.isAttacked {
		return f.memory, nil
	}
	return 1 << 20, nil
}

func (f *fakeService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	isStranger := strings.Contains(r.Header.Get("Authorization"), strangerKey)
	f.mu.Lock()
	if isStranger && f.isMortal && !f.isAttacked {
		close(f.exited)
	}
	f.isAttacked = f.isAttacked || isStranger
	isAttacked := f.isAttacked
	f.mu.Unlock()
	if f.answer != nil && isAttacked {
		f.answer(w, isStranger)
	}
}

// playFake plays attacks against a service that is not there.
func playFake(t *testing.T, f *fakeService, attacks ...attack) Report {
	t.Helper()
	rep, err := playFakeFor(t.Context(), t, f, attacks...)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// playFakeFor is playFake until ctx ends.
func playFakeFor(ctx context.Context, t *testing.T, f *fakeService, attacks ...attack) (Report, error) {
	t.Helper()
	openAccount := func(context.Context) (account, error) { return account{plan: plan.Discovery, key: strangerKey}, nil }
	r := &run{
		Options: Options{For: time.Second, Customers: 2, Rate: 50}, attacks: attacks, start: f.start(t),
		world: &world{
			places: []place{{"1 rue de la Mairie", "48000", "Mende", 44.5, 3.5}}, customers: []customer{{"a"}, {"b"}}, crowd: []customer{{"c"}},
			accounts: map[plan.Name]account{}, openDiscovery: openAccount,
		},
	}
	r.report = newReport(r.Options)
	if err := r.startTarget(ctx); err != nil {
		t.Fatal(err)
	}
	defer func() { r.watcher.stop() }()
	err := r.runPhases(ctx)
	return r.report, err
}

// askingAttack is an attack of small requests.
func askingAttack(name string) attack {
	return requestAttack(name, plan.Discovery, 2, func(t *turn, _ *rand.Rand, _ int) request { return t.get("/me") })
}

// violationsBesides are the violations that are not of latencies, which a busy machine may cause.
func violationsBesides(rep Report) (all []string) {
	for _, v := range rep.Violations {
		if !strings.Contains(v, "the p99 of customers") {
			all = append(all, v)
		}
	}
	return all
}

func TestWhatAServiceDoesWrongIsReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		service *fakeService
		want    []string // in the violations, one each
		starts  int
	}{
		"nothing": {service: &fakeService{memory: memoryBound - 1}, starts: 1},
		"it refuses the stranger": {service: &fakeService{answer: func(w http.ResponseWriter, isStranger bool) {
			if isStranger {
				w.WriteHeader(http.StatusTooManyRequests)
			}
		}}, starts: 1},
		"it refuses customers": {service: &fakeService{answer: func(w http.ResponseWriter, isStranger bool) {
			if !isStranger {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}}, want: []string{"one: ", "me: 503"}, starts: 1},
		"it cuts off customers": {service: &fakeService{answer: func(w http.ResponseWriter, isStranger bool) {
			if !isStranger {
				panic(http.ErrAbortHandler)
			}
		}}, want: []string{"me: answer cut"}, starts: 1},
		"it leaks":           {service: &fakeService{memory: memoryBound}, want: []string{"one: the process had 1024 MiB"}, starts: 1},
		"it leaks very much": {service: &fakeService{memory: MemoryGuard}, want: []string{"one: the process reached 6144 MiB of anonymous memory and was killed"}, starts: 1},
		"it ends":            {service: &fakeService{isMortal: true}, want: []string{"one: the process ended"}, starts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rep := playFake(t, c.service, askingAttack("one"))
			got := strings.Join(violationsBesides(rep), "; ")
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("violations %q, want one with %q", got, want)
				}
			}
			if len(c.want) == 0 && got != "" {
				t.Errorf("violations %q, want none", got)
			}
			if c.service.starts != c.starts {
				t.Errorf("it was started %d times, want %d", c.service.starts, c.starts)
			}
		})
	}
}

func TestAServiceThatWasKilledIsStartedForTheNextAttack(t *testing.T) {
	t.Parallel()
	f := &fakeService{memory: MemoryGuard}
	rep := playFake(t, f, askingAttack("one"), askingAttack("two"))
	if f.starts != 3 || f.killed != 3 || len(rep.Turns) != 3 {
		t.Errorf("started %d times, killed %d times in %d turns; want 3 of each: two attacks, and both together", f.starts, f.killed, len(rep.Turns))
	}
	for _, turn := range rep.Turns {
		if !turn.Died || !turn.Guarded || turn.PeakMiB != 6144 {
			t.Errorf("%s: %+v; want a death at 6144 MiB", turn.Attack, turn)
		}
	}
}

func TestARunThatIsBrokenOffReportsWhatItFound(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	interrupting := attack{"two", plan.Discovery, 2, func(context.Context, *turn) { cancel() }}
	rep, err := playFakeFor(ctx, t, &fakeService{memory: memoryBound}, interrupting, askingAttack("one")) // the seed shuffles them
	if !errors.Is(err, context.Canceled) || len(rep.Turns) != 2 {
		t.Fatalf("turns %+v, %v; want the run broken off in the second of three", rep.Turns, err)
	}
	if got := violationsBesides(rep); len(got) == 0 || !strings.HasPrefix(got[0], "one: the process had 1024 MiB") || len(rep.Turns[1].Refused) > 0 {
		t.Errorf("violations %q in turns %+v; want that of the first turn, and none of requests that were broken off", got, rep.Turns)
	}
}

// The memory that an attack leaves behind is not blamed on the next one.
func TestAServiceThatKeepsTooMuchMemoryIsStartedForTheNextAttack(t *testing.T) {
	t.Parallel()
	leveltest.Need(t, leveltest.Usual, "") // it takes seconds
	for memory, want := range map[int64]int{memoryBound: 3, memoryBound - 1: 1} {
		f := &fakeService{memory: memory}
		rep := playFake(t, f, askingAttack("one"), askingAttack("two"))
		if f.starts != want {
			t.Errorf("with %d bytes it was started %d times, want %d", memory, f.starts, want)
		}
		for _, turn := range rep.Turns {
			if want == 3 && turn.BaseMiB != 1 || turn.Died {
				t.Errorf("%s began with %.0f MiB and died %t; want 1 MiB and false", turn.Attack, turn.BaseMiB, turn.Died)
			}
		}
	}
}

func TestTheReportHasEveryPhaseAndWhatTheStrangerGot(t *testing.T) {
	t.Parallel()
	f := &fakeService{answer: func(w http.ResponseWriter, isStranger bool) {
		if isStranger {
			w.WriteHeader(http.StatusTeapot)
		}
	}}
	rep := playFake(t, f, askingAttack("one"), askingAttack("two"))
	var sizes []int
	for _, c := range rep.Crowds {
		sizes = append(sizes, c.Connections)
	}
	if !slices.Equal(sizes, []int{2, 4}) {
		t.Errorf("compared with %v honest connections, want as many as one attack has and both have", sizes)
	}
	if names := []string{rep.Turns[0].Attack, rep.Turns[1].Attack}; len(rep.Turns) != 3 || !slices.Contains(names, "one") || !slices.Contains(names, "two") || rep.Turns[2].Attack != Together {
		t.Errorf("turns %+v; want each attack, and both together", rep.Turns)
	}
	for _, turn := range rep.Turns {
		for name, outcomes := range turn.Outcomes {
			if outcomes["418"] == 0 {
				t.Errorf("%s, %s: %v, want answers of 418", turn.Attack, name, outcomes)
			}
		}
	}
	for _, figures := range [][]Latency{rep.Alone, rep.Crowds[0].Figures, rep.Turns[0].Figures} {
		if all := FindLatency(figures, AllKinds); len(figures) != 7 || all.Requests == 0 || all.P99 <= 0 || all.P99 < all.P50 || all.Max < all.P99 {
			t.Errorf("figures %+v, want six kinds and all together", figures)
		}
	}
}

func TestCustomersWaitAtMostThreeTimesAsLongAsAlongWithHonestOnes(t *testing.T) {
	t.Parallel()
	one := func(p99 float64) []Latency { return []Latency{{Kind: AllKinds, Requests: 9, P99: p99}} }
	each := func(me, verify, all float64) []Latency {
		return []Latency{{Kind: "me", Requests: 9, P99: me}, {Kind: "verify", Requests: 9, P99: verify}, {Kind: AllKinds, Requests: 9, P99: all}}
	}
	for name, c := range map[string]struct {
		crowds []Crowd
		turn   Turn
		want   string
	}{
		"three times":              {[]Crowd{{Connections: 8, Figures: one(10)}}, Turn{Attack: "a", Connections: 8, Figures: one(30)}, ""},
		"longer":                   {[]Crowd{{Connections: 8, Figures: one(10)}}, Turn{Attack: "a", Connections: 8, Figures: one(31)}, "a: the p99 of customers (all) was 31 ms"},
		"more connections":         {[]Crowd{{Connections: 9, Figures: one(100)}}, Turn{Attack: "a", Connections: 8, Figures: one(31)}, "(all) was 31 ms"},
		"fewer, but slower":        {[]Crowd{{Connections: 1, Figures: one(11)}, {Connections: 8, Figures: one(10)}}, Turn{Attack: "a", Connections: 8, Figures: one(33)}, ""},
		"noise":                    {[]Crowd{{Connections: 8, Figures: one(0.1)}}, Turn{Attack: "a", Connections: 8, Figures: one(5)}, ""},
		"together, one kind":       {[]Crowd{{Connections: 8, Figures: each(10, 10, 10)}}, Turn{Attack: Together, Connections: 8, Figures: each(31, 20, 25)}, "(me) was 31 ms"},
		"together, none":           {[]Crowd{{Connections: 8, Figures: each(10, 10, 10)}}, Turn{Attack: Together, Connections: 8, Figures: each(30, 20, 500)}, ""},
		"nobody was answered":      {nil, Turn{Attack: "a", Figures: []Latency{{Kind: AllKinds}}}, "no customer was answered"},
		"honest ones were refused": {[]Crowd{{Connections: 8, Figures: one(10), Refused: map[string]int{"me: 503": 2}}}, Turn{Attack: "a", Connections: 8, Figures: one(10)}, "along with 8 honest connections"},
	} {
		rep := Report{Alone: one(2), Crowds: c.crowds, Turns: []Turn{c.turn}}
		rep.judge()
		if got := strings.Join(rep.Violations, "; "); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// newFakeTurn is a turn against a handler. closed counts the connections that its server has closed.
func newFakeTurn(t *testing.T, h http.HandlerFunc) (tn *turn, closed *atomic.Int64) {
	t.Helper()
	closed = new(atomic.Int64)
	s := httptest.NewUnstartedServer(h)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	w := &world{accounts: map[plan.Name]account{plan.Discovery: {key: strangerKey}}}
	return newTurn(strings.TrimPrefix(s.URL, "http://"), w, attack{plan: plan.Discovery}, time.Second, 1), closed
}

// runUntilCounted runs a part of an attack until an outcome is counted, and returns what is counted in the end.
func runUntilCounted(t *testing.T, tn *turn, what string, run func(context.Context)) map[string]int {
	t.Helper()
	return runUntil(t, tn, func() bool { return tn.outcomes.counts()[what] > 0 }, run)
}

// runUntil runs a part of an attack until a condition holds, and returns what is counted in the end.
func runUntil(t *testing.T, tn *turn, holds func() bool, run func(context.Context)) map[string]int {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(ctx)
	}()
	err := harness.Retry(t.Context(), deadlinetest.Scale(time.Minute), time.Millisecond, func() error {
		if !holds() {
			return errors.New("it has not come to that")
		}
		return nil
	})
	cancel()
	<-ended
	if err != nil {
		t.Fatalf("%v, only to %v", err, tn.outcomes.counts())
	}
	return tn.outcomes.counts()
}

// A client that does not read learns only afterwards what became of its connection.
func TestWhatBecomesOfAHeldConnectionIsCounted(t *testing.T) {
	t.Parallel()
	sendPart := func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "part")
		w.(http.Flusher).Flush()
	}
	for want, answer := range map[string]http.HandlerFunc{
		wholeAnswer: func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "small") },
		endedByService: func(w http.ResponseWriter, _ *http.Request) {
			sendPart(w)
			panic(http.ErrAbortHandler)
		},
		stillOpen: func(w http.ResponseWriter, r *http.Request) {
			sendPart(w)
			<-r.Context().Done()
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			tn, closed := newFakeTurn(t, answer)
			hasCome := func() bool { return tn.outcomes.counts()["200"] > 0 && (want != endedByService || closed.Load() > 0) }
			got := runUntil(t, tn, hasCome, func(ctx context.Context) { tn.hold(ctx, 1, 0, tn.me()) })
			if got[want] != 1 || got["200"] != 1 || len(got) != 2 {
				t.Errorf("got %v; want one 200, and %q", got, want)
			}
		})
	}
	t.Run("read to the end", func(t *testing.T) {
		t.Parallel()
		tn, _ := newFakeTurn(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "small") })
		runUntilCounted(t, tn, wholeAnswer, func(ctx context.Context) { tn.hold(ctx, 1, 60<<10, tn.me()) })
	})
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		tn, _ := newFakeTurn(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
		if got := runUntilCounted(t, tn, "503", func(ctx context.Context) { tn.hold(ctx, 1, 0, tn.me()) }); got["200"] != 0 {
			t.Errorf("got %v, want 503 alone", got)
		}
	})
	t.Run("ended while it is read", func(t *testing.T) {
		t.Parallel()
		tn, _ := newFakeTurn(t, func(w http.ResponseWriter, _ *http.Request) {
			sendPart(w)
			panic(http.ErrAbortHandler)
		})
		runUntilCounted(t, tn, endedByService, func(ctx context.Context) { tn.hold(ctx, 1, 60<<10, tn.me()) })
	})
}

func TestASlowSenderCountsEveryAnswer(t *testing.T) {
	t.Parallel()
	tn, _ := newFakeTurn(t, func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
	got := runUntilCounted(t, tn, "100", func(ctx context.Context) {
		tn.trickle(ctx, 1, slowSender{prefix: tn.hugeUpsert("Expect: 100-continue").encodeHead(tn.address)})
	})
	if got["100"] != 1 || got[stillOpen] != 1 {
		t.Errorf("got %v; want 100, and the connection open", got)
	}
	tn, _ = newFakeTurn(t, func(http.ResponseWriter, *http.Request) {})
	runUntilCounted(t, tn, "200", func(ctx context.Context) { tn.trickle(ctx, 1, slowSender{prefix: tn.me().encodeHead(tn.address)}) })
}

func TestADeafSenderLearnsInTheEndWhatBecameOfItsConnection(t *testing.T) {
	t.Parallel()
	for want, header := range map[string]string{stillOpen: "Connection: keep-alive", endedByService: "Connection: close"} {
		var served atomic.Int64
		tn, closed := newFakeTurn(t, func(http.ResponseWriter, *http.Request) { served.Add(1) })
		hasCome := func() bool { return served.Load() > 0 && (want != endedByService || closed.Load() > 0) }
		got := runUntil(t, tn, hasCome, func(ctx context.Context) {
			tn.trickle(ctx, 1, slowSender{prefix: tn.me(header).encodeHead(tn.address), isUnread: true})
		})
		if got[want] != 1 || len(got) != 1 {
			t.Errorf("%s: got %v, want one %q", header, got, want)
		}
	}
}

// A flag that may be given several times splits at commas.
func TestAttacksHaveNamesOfTheirOwnWithoutCommas(t *testing.T) {
	t.Parallel()
	names := Names()
	for i, name := range names {
		if strings.Contains(name, ",") || name == Together || slices.Contains(names[:i], name) {
			t.Errorf("%q cannot be the name of an attack", name)
		}
	}
	for _, wrong := range [][]string{{"no attack"}, {names[0], ""}} {
		if _, err := selectAttacks(wrong); err == nil {
			t.Errorf("%q are taken for attacks", wrong)
		}
	}
	if got, err := selectAttacks(names[1:3]); err != nil || len(got) != 2 || got[0].name != names[1] {
		t.Errorf("got %d attacks, %v; want two", len(got), err)
	}
}

func TestBodiesAreAsLongAsTheySay(t *testing.T) {
	t.Parallel()
	p, random := place{lat: 44.5, lon: 3.5}, rand.New(rand.NewPCG(1, 1))
	tn := &turn{}
	bodies := append(hugeBodies(), syncBody(p, 30), tn.csvRequest("/search/csv", wideFile("lat,lon", 1000, 50)).body,
		tn.csvRequest("/search/csv", cellFile(random), formFields("columns", "a", 200)...).body)
	for i, b := range bodies {
		n, err := io.Copy(io.Discard, b.open())
		if err != nil || n != b.length || n > maxBody {
			t.Errorf("body %d has %d bytes, %v; it says %d, and %d is the most", i, n, err, b.length, maxBody)
		}
	}
}
