package main

import (
	"slices"
	"strings"
	"testing"

	"lieudit/cmd/bench/chaos"
)

// TestNothingAcknowledgedIsLostWhileInstancesAreKilled: kill -9 under load, with a part failing besides, on each of the
// two ways to run. The long form is lieudit bench chaos.
func TestNothingAcknowledgedIsLostWhileInstancesAreKilled(t *testing.T) {
	t.Parallel()
	for _, profile := range []chaos.Profile{chaos.Embedded, chaos.Servers} {
		t.Run(string(profile), func(t *testing.T) {
			t.Parallel()
			var rep chaos.Report
			runBenchProcess(t, &rep, "bench", "chaos", "--profile", string(profile), "--kills", "3", "--rows", "550", "--minutes", "7")
			if len(rep.Violations) > 0 {
				t.Errorf("violated: %s", strings.Join(rep.Violations, "; "))
			}
			f, ran := rep.Totals[profile]
			if !ran && slices.ContainsFunc(rep.LeftOut, func(what string) bool { return strings.HasPrefix(what, string(profile)) }) {
				t.Skip(strings.Join(rep.LeftOut, "; "))
			}
			if f.Kills < 3 || f.Rounds < 1 || f.Acknowledged == 0 || f.Accounts == 0 {
				t.Errorf("got %+v; want kills, rounds and writes", f)
			}
			t.Logf("seed %d: %+v", rep.Seed, f)
		})
	}
}
