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
