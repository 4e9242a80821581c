package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestBenchFairnessMeasuresAQuietAccountDuringFloods(t *testing.T) {
	t.Setenv(asProgramVariable, "1") // for the processes that the benchmark starts
	dir := t.TempDir()
	code, out, stderr := runCommand(t, "bench fairness --log journal --contracts two --seconds 1 --turns 1 --connections 4 --flood-rate 200 --json --dir "+dir)
	floods := map[string]bool{}
	for line := range strings.Lines(out) {
		var got struct {
			Flood  string
			Value  float64
			Raw    float64
			Second float64 `json:"flood_a_second"`
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil || got.Value <= 0 || got.Raw <= 0 || got.Second <= 0 {
			t.Errorf("%v: %s", err, line)
		}
		floods[got.Flood] = true
	}
	if code != 0 || !floods["exhausted"] || !floods["served"] {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
}

func TestBenchScaleMeasuresStartsFirstRequestsAndIdleness(t *testing.T) {
	t.Setenv(asProgramVariable, "1") // for the processes that the benchmark starts
	code, out, stderr := runCommand(t, "bench scale --accounts 20 --keys 50 --instances 2 --first-requests 5 --idle 1 --json --dir "+t.TempDir())
	figures := map[string]int{}
	for line := range strings.Lines(out) {
		var got struct {
			Start     string  `json:"start_with"`
			First     string  `json:"first_requests_of"`
			Process   string  `json:"process"`
			Value     float64 `json:"value"`
			Samples   int     `json:"samples"`
			Heap      float64 `json:"heap_MiB"`
			Processor float64 `json:"processor_s"`
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		switch {
		case got.Start != "" && got.Value > 0 && got.Heap > 0 && got.Processor > 0:
			figures["start with "+got.Start]++
		case got.First != "" && got.Samples == 5:
			figures["first requests"]++
		case got.Process != "" && got.Value > 0:
			figures["idle"]++
		}
	}
	for name, want := range map[string]int{"start with nothing": 2, "start with read models": 2, "start with read models, snapshot": 2, "first requests": 2, "idle": 6} {
		if figures[name] != want {
			t.Errorf("%d figures of %s, want %d", figures[name], name, want)
		}
	}
	if code != 0 || t.Failed() {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
}

func TestBenchScaleRefusesFewerKeysThanAccounts(t *testing.T) {
	t.Parallel()
	if code, _, stderr := runCommand(t, "bench scale --accounts 3 --keys 2 --dir "+t.TempDir()); code != 2 || !strings.Contains(stderr, "--keys") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
