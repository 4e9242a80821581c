package simulation

import (
	"encoding/json"
	"flag"
	"log/slog"
	"os"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"
)

var (
	seedFlag   = flag.Uint64("seed", 1, "of the first history")
	daysFlag   = flag.Int("days", 2, "of a history")
	scriptFlag = flag.String("script", "", "file of the script to play; one of the seed when left out")
	logFlag    = flag.Bool("log", false, "show what is asked, answered and logged")
)

// TestHistory plays one history. It is what the processes of "bench simulate" run; the names of its flags are known there.
func TestHistory(t *testing.T) {
	began := time.Now()
	cryptotest.SetGlobalRandom(t, *seedFlag)
	log := slog.New(slog.DiscardHandler)
	if *logFlag {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	folder, script := newFolder(t), readScript(t)
	synctest.Test(t, func(t *testing.T) {
		found, err := Play(t.Context(), script, folder, log)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range found {
			t.Errorf("%s: %s", v.Rule, v.Text)
		}
	})
	t.Logf("%d days in %v", len(script.Days), time.Since(began))
}

// readScript is the script to play.
func readScript(t *testing.T) (s Script) {
	t.Helper()
	if *scriptFlag == "" {
		return Generate(*seedFlag, *daysFlag)
	}
	text, err := os.ReadFile(*scriptFlag)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}
