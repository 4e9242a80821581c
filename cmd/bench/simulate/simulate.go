// Package simulate plays many histories of package simulation, each in a process of its own with a time limit, so that a stuck goroutine or a
// leak ends a process and not the run. A history that breaks a rule is replayed, to see how often it does, and cut to the shortest script that
// still does.
//
// plant.go proves that it finds defects: it puts faults into a copy of the tree, one at a time.
package simulate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"lieudit/cmd/bench/simulation"
	"lieudit/cmd/bench/simulation/customers"
	"lieudit/cmd/bench/simulation/faults"
)

// Options configure a run.
type Options struct {
	Days        int    // in all histories together
	HistoryDays int    // of one history
	Seed        uint64 // of the first history; the next ones follow
	Parallel    int    // histories at a time
	Race        bool   // with the race detector
	Tree        string // folder of the module that is built
	Keep        string // folder for the scripts and the output of failed histories
	Log         func(string)
}

// Report is the result of a run.
type Report struct {
	Days     int           `json:"days"`
	Took     time.Duration `json:"took"`
	Failures []Failure     `json:"failures"`
}

// Failure is a history that broke a rule, or did not end.
type Failure struct {
	Seed   uint64 `json:"seed"`
	Day    int    `json:"days"` // days played in all histories by then
	Text   string `json:"text"`
	Failed int    `json:"failed"` // of Played repetitions
	Played int    `json:"played"`
	Race   string `json:"race,omitempty"`   // first report of the race detector
	Script string `json:"script,omitempty"` // file of the shortest script
	Output string `json:"output,omitempty"` // file of what the history printed: a replay may not fail again

	printed string
}

// Run plays histories until it has played Options.Days, and returns their failures.
func Run(ctx context.Context, o Options) (Report, error) {
	folder, err := os.MkdirTemp("", "lieudit-simulate-")
	if err != nil {
		return Report{}, err
	}
	defer os.RemoveAll(folder)
	p := player{Options: o, program: filepath.Join(folder, "history"), folder: folder}
	if err := p.build(ctx); err != nil {
		return Report{}, err
	}
	began := time.Now()
	r := Report{Failures: p.playAll(ctx)}
	r.Took, r.Days = time.Since(began), p.played
	for i := range r.Failures {
		if ctx.Err() == nil {
			p.keepOutput(&r.Failures[i])
			p.study(ctx, &r.Failures[i])
		}
	}
	return r, ctx.Err()
}

// player plays histories with one program.
type player struct {
	Options
	program, folder string

	mu     sync.Mutex
	played int // days
}

// build builds the program that plays histories: the tests of package simulation.
func (p *player) build(ctx context.Context) error {
	args, env := []string{"test", "-c", "-o", p.program}, os.Environ()
	if p.Race {
		args, env = append(args, "-race"), append(env, "CGO_ENABLED=1") // the race detector needs cgo
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "lieudit/cmd/bench/simulation")...)
	cmd.Dir, cmd.Env = p.Tree, env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the simulation: %w\n%s", err, out)
	}
	return nil
}

// playAll plays one history after another on all processors.
func (p *player) playAll(ctx context.Context) (failures []Failure) {
	var playing errgroup.Group
	playing.SetLimit(p.Parallel)
	histories := (p.Days + p.HistoryDays - 1) / p.HistoryDays
	for n := range histories {
		if ctx.Err() != nil {
			break
		}
		playing.Go(func() error {
			seed := p.Seed + uint64(n)
			text, out := p.play(ctx, seed, "-days", fmt.Sprint(p.HistoryDays))
			p.mu.Lock()
			defer p.mu.Unlock()
			p.played += p.HistoryDays
			if text != "" && ctx.Err() == nil {
				failures = append(failures, Failure{Seed: seed, Day: p.played, Text: text, Race: raceReport(out), printed: out})
				p.Log(fmt.Sprintf("seed %d: %s", seed, text))
			}
			return nil
		})
	}
	playing.Wait() // no history returns an error: each failure is a Failure
	return failures
}

// processors returns the number of processors for a history: on one it is nearly twice as fast, on all of them goroutines interleave
// differently.
func processors(seed uint64) int {
	if seed%4 == 0 {
		return runtime.NumCPU()
	}
	return 1
}

// collectorTarget makes the garbage collector of a history run less often: its memory is small, and its life short.
const collectorTarget = "GOGC=400"

// A history may take historyTime, and dayTime for each of its days: many times what it needs, for a machine with other work.
const (
	historyTime = time.Minute
	dayTime     = 30 * time.Second
)

// play plays the history of a seed and returns its failure, "" for none, and what it printed.
func (p *player) play(ctx context.Context, seed uint64, args ...string) (failure, out string) {
	limit := historyTime + time.Duration(p.HistoryDays)*dayTime
	if p.Race {
		limit *= 5
	}
	args = append([]string{"-test.run", "^TestHistory$", "-test.timeout", limit.String(), "-seed", fmt.Sprint(seed)}, args...)
	cmd := exec.CommandContext(ctx, p.program, args...)
	cmd.Dir, cmd.Env = p.folder, append(os.Environ(), collectorTarget, fmt.Sprint("GOMAXPROCS=", processors(seed)))
	printed, err := cmd.CombinedOutput()
	if err == nil {
		return "", ""
	}
	return summarize(string(printed)), string(printed)
}

// testLine matches the beginning of a line in which the testing package names the failed line of a test.
var testLine = regexp.MustCompile(`^\s*\w+_test\.go:\d+: `)

// summarize returns the first line of a program's output that explains its failure.
func summarize(out string) string {
	for line := range strings.Lines(out) {
		switch {
		case testLine.MatchString(line):
			return strings.TrimSpace(testLine.ReplaceAllString(line, ""))
		case strings.HasPrefix(line, "panic: test timed out"):
			return "the history does not end: " + stuckGoroutine(out)
		case strings.HasPrefix(line, "panic:"), strings.HasPrefix(line, "fatal error:"), strings.Contains(line, raceBegins):
			return strings.TrimSpace(line) + " " + firstOwnFrame(cmp.Or(raceReport(out), out))
		}
	}
	return "failed without a word: " + strings.TrimSpace(out[:min(len(out), 300)])
}

// stuckGoroutine names the place of a waiting goroutine that stops the clock: one that is not durably blocked.
func stuckGoroutine(out string) string {
	for _, block := range strings.Split(out, "\n\n") {
		head, _, _ := strings.Cut(block, "\n")
		if strings.HasPrefix(head, "goroutine") && strings.Contains(head, "synctest bubble") && !strings.Contains(head, "durable") && !strings.Contains(head, "[running]") {
			return head + " " + firstOwnFrame(block)
		}
	}
	return firstOwnFrame(out)
}

// raceReport returns the first report of the race detector in a program's output, "" for none.
func raceReport(out string) string {
	_, report, found := strings.Cut(out, raceBegins)
	if !found {
		return ""
	}
	report, _, _ = strings.Cut(report, "==================")
	return raceBegins + report
}

// raceBegins begins a report of the race detector.
const raceBegins = "WARNING: DATA RACE"

// firstOwnFrame returns the first function of the service in a stack, otherwise the first of the simulation. The race detector
// indents its stacks; a panic does not.
func firstOwnFrame(stack string) (frame string) {
	for line := range strings.Lines(stack) {
		line = strings.TrimSpace(line)
		isSimulation := strings.HasPrefix(line, "lieudit/cmd/bench/")
		switch {
		case strings.HasPrefix(line, "lieudit/") && !isSimulation:
			return line
		case isSimulation && frame == "":
			frame = line
		}
	}
	return frame
}

// repetitions is how often a script is replayed to see how often it fails.
const repetitions = 5

// study replays a failed history, and shortens it.
func (p *player) study(ctx context.Context, f *Failure) {
	script := simulation.Generate(f.Seed, p.HistoryDays)
	rule, _, _ := strings.Cut(f.Text, ":")
	if f.Race != "" {
		rule = f.Text // with its place: another race is another failure
	}
	s := shortener{player: p, rule: rule}
	f.Played = repetitions
	f.Failed = s.countFailures(ctx, script, repetitions)
	short := script // a script that fails only in a rare order of goroutines is not shortened
	if f.Failed > 0 {
		short = s.shorten(ctx, script)
	}
	f.Script = p.keptFile(f.Seed, ".json")
	if err := writeScript(f.Script, short); err != nil {
		p.Log(err.Error())
	}
}

// keepOutput writes what a failed history printed to a file.
func (p *player) keepOutput(f *Failure) {
	file := p.keptFile(f.Seed, ".txt")
	if err := writeFile(file, []byte(f.printed)); err != nil {
		p.Log(err.Error())
		return
	}
	f.Output = file
}

// keptFile returns the path of a file that is kept of a failed history.
func (p *player) keptFile(seed uint64, extension string) string {
	return filepath.Join(p.Keep, fmt.Sprintf("simulation-%d%s", seed, extension))
}

func writeScript(path string, s simulation.Script) error {
	text, err := json.MarshalIndent(s, "", "  ")
	return errors.Join(err, writeFile(path, text))
}

func writeFile(path string, text []byte) error {
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, text, 0o600))
}

// shortener shortens a script while it still breaks a rule.
type shortener struct {
	*player
	rule string
}

// countFailures plays a script several times and counts how often it breaks the rule.
func (s *shortener) countFailures(ctx context.Context, script simulation.Script, times int) (failed int) {
	file, err := os.CreateTemp(s.folder, "script-*.json")
	if err != nil {
		return 0
	}
	file.Close()
	defer os.Remove(file.Name())
	if err := writeScript(file.Name(), script); err != nil {
		return 0
	}
	var mu sync.Mutex
	var playing errgroup.Group
	playing.SetLimit(s.Parallel)
	for range times {
		playing.Go(func() error {
			text, _ := s.play(ctx, script.Seed, "-script", file.Name())
			mu.Lock()
			defer mu.Unlock()
			if strings.HasPrefix(text, s.rule) {
				failed++
			}
			return nil
		})
	}
	playing.Wait()
	return failed
}

// shortenTime limits how long a script is shortened.
const shortenTime = 3 * time.Minute

// shorten removes days, then faults, then acts, in ever smaller pieces, while what is left still breaks the rule.
func (s *shortener) shorten(ctx context.Context, script simulation.Script) simulation.Script {
	ctx, cancel := context.WithTimeout(ctx, shortenTime)
	defer cancel()
	script.Days = cut(script.Days, func(days []simulation.Day) bool { return s.stillFails(ctx, withDays(script, days)) })
	for i := range script.Days {
		script.Days[i].Faults = cut(script.Days[i].Faults, func(left []faults.Fault) bool {
			days := slices.Clone(script.Days)
			days[i].Faults = left
			return s.stillFails(ctx, withDays(script, days))
		})
	}
	for i := range script.Days {
		script.Days[i].Acts = cut(script.Days[i].Acts, func(left []customers.Act) bool {
			days := slices.Clone(script.Days)
			days[i].Acts = left
			return s.stillFails(ctx, withDays(script, days))
		})
	}
	return script
}

// stillFails reports whether a script breaks the rule in one of three plays.
func (s *shortener) stillFails(ctx context.Context, script simulation.Script) bool {
	return ctx.Err() == nil && s.countFailures(ctx, script, 3) > 0
}

func withDays(s simulation.Script, days []simulation.Day) simulation.Script {
	s.Days = days
	return s
}

// cut removes pieces of a list, first halves and finally single elements, as long as the rest keeps a property.
func cut[S ~[]T, T any](all S, keeps func(S) bool) S {
	for size := (len(all) + 1) / 2; size > 0; size /= 2 {
		for at := 0; at < len(all); {
			left := append(append(S{}, all[:at]...), all[min(at+size, len(all)):]...)
			if keeps(left) {
				all = left
			} else {
				at += size
			}
		}
	}
	return all
}
