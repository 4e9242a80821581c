package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"lieudit/cmd/bench/chaos"
	"lieudit/cmd/bench/harness"
	"lieudit/cmd/bench/metering"
	"lieudit/cmd/bench/places"
	"lieudit/cmd/bench/stranger"
	"lieudit/cmd/lieudit/cli"
	"lieudit/cmd/terminal"
	"lieudit/eventstore"
	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/esdb"
	"lieudit/eventstore/leveltest"
	"lieudit/queries/route/routerprocess"
	"lieudit/queries/route/routertest"
)

// asProgramVariable is an environment variable that makes the test binary run as the program. The processes that it starts
// inherit the variable.
const asProgramVariable = "LIEUDIT_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgramVariable) != "" {
		main()
	}
	os.Exit(m.Run())
}

// runCommand runs a command line of the program in this process. Single quotes keep an empty argument.
func runCommand(t *testing.T, line string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	args := strings.Fields(line)
	for i := range args {
		args[i] = strings.Trim(args[i], "'")
	}
	code = program{newTestTerminal("bench", &out, &errs)}.runCommand(t.Context(), args)
	return code, out.String(), errs.String()
}

func newTestTerminal(name string, out, errs *bytes.Buffer) terminal.Terminal {
	return terminal.Terminal{
		Name: name, In: strings.NewReader(""), Out: out, Err: errs, TimeZone: time.UTC,
		LookupEnv: func(string) (string, bool) { return "", false },
	}
}

// generateAddresses writes a file of invented addresses.
func generateAddresses(t *testing.T, file string) {
	t.Helper()
	var out, errs bytes.Buffer
	p := cli.Program{Terminal: newTestTerminal("lieudit", &out, &errs)}
	if code := p.Run(t.Context(), []string{"lieudit", "ban", "generate", "--addresses", "400", "--seed", "1", "--out", file}); code != 0 {
		t.Fatal(&errs)
	}
}

func TestBenchLogPrintsFiguresAndLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	line := "bench log --turns 1 --events 1000 --dir " + dir
	code, out, stderr := runCommand(t, line)
	if heads, _, _ := strings.Cut(out, "\n"); code != 0 || len(strings.Split(out, "\n")) < 6 || !strings.Contains(heads, "RAW") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	_, out, _ = runCommand(t, line+" --json")
	for figure := range strings.Lines(out) {
		var got struct {
			Figure string
			Value  float64
		}
		if err := json.Unmarshal([]byte(figure), &got); err != nil || got.Figure == "" || got.Value <= 0 {
			t.Errorf("%q: %v", figure, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if code, _, _ := runCommand(t, "bench log --turns 0"); code != 2 {
		t.Errorf("no turns: exit %d, want 2", code)
	}
}

func TestBenchAddressPrintsFiguresAndLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	line := "bench address --sizes 500,1k --turn 5ms --connections 2 --dir " + dir
	code, out, stderr := runCommand(t, line)
	if code != 0 || strings.Count(out, "\n") != 1+2*11 || !strings.Contains(out, "autocomplete") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	_, out, _ = runCommand(t, line+" --json")
	for figure := range strings.Lines(out) {
		var got struct {
			Rows  int
			Value float64
		}
		if err := json.Unmarshal([]byte(figure), &got); err != nil || got.Rows == 0 || got.Value <= 0 {
			t.Errorf("%q: %v", figure, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	for _, wrong := range []string{"", "10x", "0", "1G", "-5"} {
		if code, _, _ := runCommand(t, "bench address --sizes '"+wrong+"'"); code != 2 {
			t.Errorf("sizes %q: exit %d, want 2", wrong, code)
		}
	}
}

func TestBenchAddressScoresDamagedAddressesOfFiles(t *testing.T) {
	t.Parallel()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "rows.csv.gz")
	generateAddresses(t, file)
	line := "bench address --file " + file + " --damaged 3 --turn 5ms --connections 2 --dir " + dir
	code, out, stderr := runCommand(t, line)
	if code != 0 || !strings.Contains(out, "FALSE EXACT") || !strings.Contains(out, "wrong postcode") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	_, out, _ = runCommand(t, line+" --json")
	scores := 0
	for figure := range strings.Lines(out) {
		var got struct {
			Damage             string
			Asked, First, Rows int
		}
		if err := json.Unmarshal([]byte(figure), &got); err != nil || got.Rows == 0 && got.Damage == "" || got.First > got.Asked {
			t.Errorf("%q: %v", figure, err)
		}
		if got.Damage == "clean" && got.First == 3 {
			scores++
		}
	}
	if scores != 1 {
		t.Errorf("clean addresses are not found: %s", out)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	for _, wrong := range []string{"--damaged 0", "--meilisearch 127.0.0.1", "--meilisearch http://"} {
		if code, out, _ := runCommand(t, "bench address "+wrong); code != 2 || out != "" {
			t.Errorf("%s: exit %d, said %q; want 2 and nothing", wrong, code, out)
		}
	}
}

func TestBenchPlacingPrintsFiguresAndLeavesNothing(t *testing.T) {
	t.Parallel()
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "out.csv")
	questions := filepath.Join(t.TempDir(), "questions.csv")
	if err := os.WriteFile(questions, []byte("set;kind;q;lat;lon;id;label\nabsent;words;12 rue Xyzzy 48000 Mende;;;;\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	line := "bench placing --questions " + questions + " --invented 500 --dir " + dir
	code, got, stderr := runCommand(t, line+" --out "+out)
	if code != 0 || !strings.Contains(got, "WRONG DEPARTMENT") || !strings.Contains(got, "town in ligne_1") {
		t.Errorf("exit %d: %s%s", code, got, stderr)
	}
	if written, err := os.ReadFile(out); err != nil || !strings.Contains(string(written), "12 rue Xyzzy||48000|Mende|") {
		t.Errorf("%s, %v", written, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	for _, wrong := range []string{"", "--questions " + questions + " --invented -1", "--questions " + questions + " --absent 3"} {
		if code, out, _ := runCommand(t, "bench placing "+wrong); code != 2 || out != "" {
			t.Errorf("%s: exit %d, said %q; want 2 and nothing", wrong, code, out)
		}
	}
}

func TestBenchAddressCountsRightAnswersAndLeavesNothing(t *testing.T) {
	t.Parallel()
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "out.csv")
	questions := filepath.Join(t.TempDir(), "questions.csv")
	if err := os.WriteFile(questions, []byte("set;kind;q;lat;lon;id;label\nabsent;words;xyzzy;;;;\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	line := "bench address --questions " + questions + " --invented 500 --absent 8 --exact 2 --dir " + dir
	code, got, stderr := runCommand(t, line+" --out "+out)
	if code != 0 || !strings.Contains(got, "PROCESSOR US") || !strings.Contains(got, "FOUND ELSEWHERE") {
		t.Errorf("exit %d: %s%s", code, got, stderr)
	}
	_, got, _ = runCommand(t, line+" --json --peer "+out)
	var f struct {
		Set, Kind string
		Value     float64
		Peer      float64 `json:"peer_first_%"`
	}
	if first, _, _ := strings.Cut(got, "\n"); json.Unmarshal([]byte(first), &f) != nil || f.Set != "absent" || f.Kind != "words" || f.Value != 100 || f.Peer != 100 {
		t.Errorf("%+v of %s", f, first)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	for _, wrong := range []string{"--exact 0", "--absent -1", "--invented -1", "--out x.csv", "--exact 1 --sizes 10k"} {
		if code, out, _ := runCommand(t, "bench address "+wrong); code != 2 || out != "" {
			t.Errorf("%s: exit %d, said %q; want 2 and nothing", wrong, code, out)
		}
	}
}

func TestBenchAddressTypesAddressesAndLeavesNothing(t *testing.T) {
	t.Parallel()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "rows.csv.gz")
	generateAddresses(t, file)
	line := "bench address --keystrokes 2 --file " + file + " --invented 300 --dir " + dir
	code, got, stderr := runCommand(t, line)
	if code != 0 || !strings.Contains(got, "KEYS TO 1ST") || !strings.Contains(got, "commune first") {
		t.Errorf("exit %d: %s%s", code, got, stderr)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	for _, wrong := range []string{"--keystrokes 0", "--keystrokes 3", "--keystrokes 3 --file x.csv --sizes 10k", "--keystrokes 3 --file x.csv --absent 2", "--peer-url http://127.0.0.1:1"} {
		if code, out, _ := runCommand(t, "bench address "+wrong); code != 2 || out != "" {
			t.Errorf("%s: exit %d, said %q; want 2 and nothing", wrong, code, out)
		}
	}
}

func TestInvalidFlagsOfUsageAPIAndChaosAreUsageErrors(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"usage --instances 0", "usage --cap 0", "usage --seed x", "usage --postgres postgres://x --runs 2", "usage --only figure", "usage --clients 0", "usage --contracts 0",
		"usage --log eventstore", "api --connections 0", "api --connections 1,x", "api --log tape", "api --log journal,eventstore", "api --seconds 0",
		"chaos --kills 0", "chaos --profile tape", "chaos --rows 6001", "chaos --minutes 0",
	} {
		if code, out, _ := runCommand(t, "bench "+line); code != 2 || out != "" {
			t.Errorf("%s: exit %d, said %q; want 2 and nothing", line, code, out)
		}
	}
}

// Instances and the node are killed (kill -9), and connections are cut as ticks pass. go run ./cmd/bench usage --chaos runs
// the same for longer.
func TestMeteringIsExactWhileProcessesAreKilled(t *testing.T) {
	t.Parallel()
	leveltest.Need(t, leveltest.Whole, "")
	rep := runMeteringBench(t, "--chaos", "--instances", "2", "--clients", "8", "--contracts", "3", "--cap", "400", "--requests", "700")
	if !slices.ContainsFunc(rep.Processes, func(l metering.Process) bool { return l.Killed }) {
		t.Error("no instance was killed")
	}
	for _, c := range rep.Contracts {
		if c.MaxCounted != c.Cap {
			t.Errorf("%s: the log counts no more than %d, so that its cap of %d was not met", c.ID, c.MaxCounted, c.Cap)
		}
	}
	t.Logf("seed %d: %d served of %d, %d incidents", rep.Seed, rep.Served, rep.Cap, len(rep.Incidents))
}

func TestTheCapIsExactOnProcessesThatShareANode(t *testing.T) {
	t.Parallel()
	leveltest.Need(t, leveltest.Whole, "")
	rep := runMeteringBench(t, "--instances", "2", "--clients", "8", "--contracts", "1", "--cap", "400", "--requests", "900")
	if rep.Served != 400 || rep.Counted != 400 {
		t.Errorf("served %d, counted %d, want exactly 400", rep.Served, rep.Counted)
	}
}

func TestTheCapsOfAnAgencyAndItsSubClientsAreExact(t *testing.T) {
	t.Parallel()
	leveltest.Need(t, leveltest.Whole, "")
	rep := runMeteringBench(t, "--instances", "2", "--clients", "8", "--contracts", "2", "--cap", "400", "--requests", "600")
	if len(rep.Contracts) != 2 || len(rep.Contracts[1].Accounts) != 4 || rep.Contracts[0].Served != 300 {
		t.Fatalf("got %+v; want a contract of 300, and an agency with three sub-clients", rep.Contracts)
	}
	agency := rep.Contracts[1]
	if a := agency.Accounts; agency.Served != 400 || a[1].Served != 50 || a[2].Served != 100 {
		t.Errorf("got %+v; want exactly 400, of which 50 and 100 of two sub-clients", agency)
	}
}

func TestBenchAPIReportsSpeedAndUsageEvents(t *testing.T) {
	t.Parallel()
	var f struct {
		Value  float64
		Raw    float64
		P50    float64 `json:"p50_ms"`
		P99    float64 `json:"p99_ms"`
		Events float64 `json:"events_per_million"`
		MB     float64 `json:"log_MB_per_million"`

		Processor float64 `json:"processor_us"`
		Empty     float64 `json:"empty_us"`
	}
	runBenchProcess(t, &f, "api", "--log", "journal", "--connections", "2", "--accounts", "3", "--path", "/me", "--seconds", "1", "--turns", "1")
	if f.Value <= 0 || f.Raw <= 0 || f.P99 < f.P50 || f.Events < 500_000 || f.Events > 1_100_000 {
		t.Errorf("got %+v; want figures, and between one event for two requests and one for each, with a snapshot now and then", f)
	}
	if f.MB < 10 || f.MB > 1000 {
		t.Errorf("a request writes %v bytes; want about those of an event, and not those of a segment with its zeros", f.MB)
	}
	if runtime.GOOS == "linux" && (f.Empty <= 0 || f.Processor <= f.Empty) {
		t.Errorf("a request takes %v µs of processor, and %v in an empty handler", f.Processor, f.Empty)
	}
}

// What the figures say was written is what a fold of the log finds: both runs together, because the second finds the log of the first.
func TestBenchUsageMeasuresAServerThatRunsAlready(t *testing.T) {
	leveltest.Need(t, leveltest.Whole, "")
	t.Setenv(asProgramVariable, "1")
	w, err := harness.NewWorkDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Remove() })
	node, err := harness.StartNode(t.Context(), w, "node")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Kill)
	var events, bytes float64
	for range 2 {
		code, out, stderr := runCommand(t, "bench usage --only figures --log eventstore --eventstore esdb+unix://"+w.SocketPath("node")+
			" --connections 2 --accounts 1 --seconds 1 --turns 1 --json --dir "+t.TempDir())
		if code != 0 || strings.Count(out, "\n") != 2 || !strings.Contains(out, "verify") {
			t.Fatalf("exit %d: %s%s; want figures of two paths", code, out, stderr)
		}
		for line := range strings.Lines(out) {
			var f struct {
				Log     string
				Samples float64
				Events  float64 `json:"events_per_million"`
				MB      float64 `json:"log_MB_per_million"`
			}
			if err := json.Unmarshal([]byte(line), &f); err != nil || f.Log != "eventstore" {
				t.Errorf("%q: %v", line, err)
			}
			events, bytes = events+f.Samples*f.Events/1e6, bytes+f.Samples*f.MB
		}
	}
	wantEvents, wantBytes := foldUsage(t, "esdb+unix://"+w.SocketPath("node"))
	if events < 0.9*wantEvents || events > wantEvents || bytes < 0.9*wantBytes || bytes > 1.5*wantBytes {
		t.Errorf("the figures say %v events and %v bytes; the log has %v with %v", events, bytes, wantEvents, wantBytes)
	}
}

// recordHeader is how many bytes a journal writes for each event besides what the event holds.
const recordHeader = 64

// foldUsage counts the events of usage on a log, and their bytes.
func foldUsage(t *testing.T, url string) (events, bytes float64) {
	t.Helper()
	store, err := esdb.Open(t.Context(), url, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	for signal, err := range store.ReadAll(t.Context(), eventstore.Checkpoint{}, eventstore.Filter{"usage"}) {
		if err != nil {
			t.Fatal(err)
		}
		if e := signal.Event; signal.Kind == eventstore.EventAppeared {
			events, bytes = events+1, bytes+float64(recordHeader+len(e.Stream)+len(e.Type)+len(e.Data)+len(e.Metadata))
		}
	}
	return events, bytes
}

// The file has no ids, which the first try refuses with an --id that the second one takes. Its first site stands 40 km off.
func TestBenchPlacesTellsWhatBecomesOfAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "shops.csv")
	rows := "nom;tél;cp;ville;lat;lon;étage\nChez Paul;04 66 00 00 00;48000;Mende;44,85;3,9;1\nChez Anne;;48000;Mende;44,52;3,5;\n"
	if err := os.WriteFile(file, []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	var got places.File
	runBenchProcess(t, &got, "places", file)
	if got.First.Imported || got.Second == nil || !got.Second.Imported || !strings.HasPrefix(strings.Join(got.Second.Flags, " "), "--id hash:") {
		t.Errorf("first %+v, second %+v; want a refusal and an --id that goes in", got.First, got.Second)
	}
	if want := (places.Columns{Fields: 6, Properties: 1}); got.Columns != want || got.Rows != 2 || got.Sites != 2 || got.Positioned != 2 || got.Named != 2 {
		t.Errorf("got %+v; want 2 sites and %+v", got, want)
	}
	if got.Alerts["position_loin"] != 1 || len(got.Outside) != 0 {
		t.Errorf("alerts %v, outside %v; want the one that stands far off, with an alert", got.Alerts, got.Outside)
	}
	if !got.HasSameRoundTrips() || len(got.RoundTrips) != 4 || got.PeakKB < 0 {
		t.Errorf("round trips %+v, peak %d kB", got.RoundTrips, got.PeakKB)
	}
	if code, out, _ := runCommand(t, "bench places"); code != 2 || out != "" {
		t.Errorf("no file: exit %d, said %q; want 2 and nothing", code, out)
	}
}

// runMeteringBench runs the usage command, which must find nothing violated.
func runMeteringBench(t *testing.T, words ...string) (rep metering.Report) {
	t.Helper()
	runBenchProcess(t, &rep, append([]string{"usage", "--only", "proof"}, words...)...)
	if len(rep.Violations) > 0 {
		t.Errorf("violated: %s", strings.Join(rep.Violations, "; "))
	}
	return rep
}

// runBenchProcess runs the program in a process of its own and reads the JSON it prints. It must leave nothing behind.
func runBenchProcess(t *testing.T, into any, words ...string) {
	t.Helper()
	if code := runBenchProcessToEnd(t, into, words...); code != 0 {
		t.Fatalf("exit %d: %+v", code, into)
	}
}

// runBenchProcessToEnd is runBenchProcess for a program that may exit 1 with its report, and returns the exit code.
func runBenchProcessToEnd(t *testing.T, into any, words ...string) int {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), deadlinetest.Scale(8*time.Minute))
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], append(words, "--json", "--dir", dir)...)
	cmd.Env = append(os.Environ(), asProgramVariable+"=1")
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil || out.Len() == 0 {
		t.Fatalf("%v: %s%s", err, &out, &stderr)
	}
	if err := json.Unmarshal(out.Bytes(), into); err != nil {
		t.Fatalf("%v: %s%s", err, &out, &stderr)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if code := cmd.ProcessState.ExitCode(); code != 0 {
		t.Logf("exit %d: %s", code, &stderr)
	}
	return cmd.ProcessState.ExitCode()
}

// The instances are killed (kill -9) under load while another part fails, in both profiles. go run ./cmd/bench chaos runs the
// same for longer.
func TestNothingAcknowledgedIsLostWhileInstancesAreKilled(t *testing.T) {
	t.Parallel()
	leveltest.Need(t, leveltest.Whole, "")
	for _, profile := range []chaos.Profile{chaos.Embedded, chaos.Servers} {
		t.Run(string(profile), func(t *testing.T) {
			t.Parallel()
			var rep chaos.Report
			runBenchProcess(t, &rep, "chaos", "--profile", string(profile), "--kills", "3", "--rows", "550", "--minutes", "7")
			if len(rep.Violations) > 0 {
				t.Errorf("violated: %s", strings.Join(rep.Violations, "; "))
			}
			f, ran := rep.Totals[profile]
			if !ran && slices.ContainsFunc(rep.LeftOut, func(what string) bool { return strings.HasPrefix(what, string(profile)) }) {
				leveltest.Need(t, leveltest.Whole, strings.Join(rep.LeftOut, "; "))
			}
			if f.Kills < 3 || f.Rounds < 1 || f.Acknowledged == 0 || f.Accounts == 0 {
				t.Errorf("got %+v; want kills, rounds and writes", f)
			}
			t.Logf("seed %d: %+v", rep.Seed, f)
		})
	}
}

// A short run of a few attacks. How long customers wait on a busy machine proves nothing, nor that a request is refused on one that is
// too busy to check keys, so that the exit code may be 1.
func TestBenchStrangerTellsWhatItGotAndWhatCustomersGot(t *testing.T) {
	t.Parallel()
	leveltest.Need(t, leveltest.Whole, "")
	if runtime.GOOS != "linux" {
		t.Skip("the memory of a process is read from /proc")
	}
	var rep stranger.Report
	code := runBenchProcessToEnd(t, &rep, "stranger", "--for", "6s", "--sites", "30", "--only", "flood of a revoked key", "--only", "large headers", "--only", "slow headers")
	wanted := map[string]string{"flood of a revoked key": "401", "large headers": "431", "slow headers": "open at the end"}
	if len(rep.Turns) != 1+len(wanted) || rep.Turns[len(wanted)].Attack != stranger.Together {
		t.Fatalf("turns %+v; want each attack, and all together", rep.Turns)
	}
	for _, turn := range rep.Turns {
		for attack, outcomes := range turn.Outcomes {
			if outcomes[wanted[attack]] == 0 {
				t.Errorf("%s, %s: the stranger got %v, want %s", turn.Attack, attack, outcomes, wanted[attack])
			}
		}
		if turn.Died || turn.PeakMiB < 1 || turn.Requests == 0 || stranger.FindLatency(turn.Figures, stranger.AllKinds).P99 <= 0 {
			t.Errorf("%+v; want a process that lives, and customers who are answered", turn)
		}
	}
	if (code != 0) != (len(rep.Violations) > 0) {
		t.Errorf("exit %d with violations %q", code, rep.Violations)
	}
	for _, wrong := range []string{"--only nothing", "--for 1ms", "--customers 0", "--before HEAD --program x"} {
		if code, out, _ := runCommand(t, "bench stranger "+wrong); code != 2 || out != "" {
			t.Errorf("%s: exit %d, said %q; want 2 and nothing", wrong, code, out)
		}
	}
}

func TestBenchRouteComparesPairsAndTimesThemOverHTTP(t *testing.T) {
	t.Setenv(asProgramVariable, "1")
	programs, dir := routertest.FindPrograms(t, routerprocess.OSRM), t.TempDir()
	routertest.FindPrograms(t, routerprocess.Valhalla)
	code, out, stderr := runCommand(t, "bench route --random 25 --json --routers "+programs+" --dir "+dir+" --map "+routertest.WriteTown(t))
	if code != 0 {
		t.Fatalf("exit %d: %s%s", code, out, stderr)
	}
	timed := 0
	for line := range strings.Lines(out) {
		var f struct {
			Server    string  `json:"over_HTTP"`
			Median    float64 `json:"p50_ms"`
			Processor float64 `json:"processor_ms"`
			Size      float64 `json:"KB_an_answer"`
		}
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Errorf("%q: %v", line, err)
		}
		if f.Server == "" {
			continue
		}
		timed++
		if f.Median <= 0 || f.Size <= 0 || runtime.GOOS == "linux" && f.Processor <= 0 {
			t.Errorf("got %q", line)
		}
	}
	if timed != 9 {
		t.Errorf("%d servers and forms of answers are timed:\n%s", timed, out)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}
