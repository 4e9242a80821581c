package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestBenchStartsMeasuresALogThatTheServiceShowsAsItWasWritten(t *testing.T) {
	t.Setenv(asProgramVariable, "1") // for the processes that the benchmark starts
	// Two streams, each with more ticks than there are between two snapshots.
	const options = " --accounts 20 --requests 2600 --per-tick 1 --shards 2 --reconcile --json --dir "
	for _, line := range []string{"--log journal,node --form shared", "--log node --form own"} {
		code, out, stderr := runCommand(t, "bench starts "+line+options+t.TempDir())
		starts := map[string]int{}
		for line := range strings.Lines(out) {
			var got struct {
				Start     string  `json:"start_with"`
				Value     float64 `json:"value"`
				Raw       float64 `json:"raw"`
				Events    float64 `json:"events"`
				Ticks     int     `json:"ticks"`
				Serves    float64 `json:"s_until_it_serves"`
				Processor float64 `json:"processor_s"`
			}
			if err := json.Unmarshal([]byte(line), &got); err != nil || got.Value <= 0 || got.Serves <= 0 || got.Processor <= 0 || got.Ticks == 0 {
				t.Fatalf("%v: %s", err, line)
			}
			if got.Start == "nothing" && (got.Raw <= 0 || got.Events < float64(got.Ticks)) {
				t.Errorf("the log alone was not read: %s", line)
			}
			starts[got.Start]++
		}
		for _, start := range []string{"nothing", "read models", "read models, killed"} {
			if want := strings.Count(line, ",") + 1; starts[start] != want {
				t.Errorf("%s: %d starts with %s, want %d", line, starts[start], start, want)
			}
		}
		if code != 0 || t.Failed() {
			t.Errorf("exit %d: %s%s", code, out, stderr)
		}
	}
}
