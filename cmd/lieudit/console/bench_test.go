package console_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

func TestBenchLogPrintsFiguresAndLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	line := "lieudit bench log --turns 1 --events 1000 --dir " + dir
	code, out, complaints := run(t, nil, line)
	if heads, _, _ := strings.Cut(out, "\n"); code != 0 || len(strings.Split(out, "\n")) < 6 || !strings.Contains(heads, "RAW LIMIT") {
		t.Errorf("exit %d: %s%s", code, out, complaints)
	}
	_, out, _ = run(t, nil, line+" --json")
	for figure := range strings.Lines(out) {
		var got struct {
			Name  string
			Value float64
		}
		if err := json.Unmarshal([]byte(figure), &got); err != nil || got.Name == "" {
			t.Errorf("%q: %v", figure, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if code, _, _ := run(t, nil, "lieudit bench log --turns 0"); code != 2 {
		t.Errorf("no turns: exit %d, want 2", code)
	}
}

func TestBenchesOfProcessesRefuseWhatCannotBeMeant(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"bench meter --instances 0", "bench meter --cap 0", "bench meter --seed x", "bench meter --postgres postgres://x --runs 2",
		"bench api --connections 0", "bench api --connections 1,x", "bench api --log tape", "bench api --seconds 0",
	} {
		if code, out, _ := run(t, nil, "lieudit "+line); code != 2 || out != "" {
			t.Errorf("%s: exit %d, said %q; want 2 and nothing", line, code, out)
		}
	}
}
