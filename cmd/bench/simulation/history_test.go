package simulation

import (
	"encoding/json"
	"flag"
	"log/slog"
	"os"
	"runtime/debug"
	"runtime/metrics"
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

// TestHistory plays one history. The processes of "bench simulate" run it and pass its flags by name.
func TestHistory(t *testing.T) {
	began := time.Now()
	cryptotest.SetGlobalRandom(t, *seedFlag)
	log := slog.New(slog.DiscardHandler)
	if *logFlag {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	folder, script := newFolder(t), readScript(t)
	go limitMemory()
	synctest.Test(t, func(t *testing.T) {
		found, err := Play(t.Context(), script, folder, log)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range found {
			t.Error(v)
		}
	})
	t.Logf("%d days in %v", len(script.Days), time.Since(began))
}

// maxMemory limits the bytes of a history: many times what it needs, and less than a machine has that plays two of them.
const maxMemory = 6 << 30

// limitMemory ends the process, with all stacks, if its memory grows without bound. It never returns.
func limitMemory() {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	for range time.Tick(200 * time.Millisecond) {
		if metrics.Read(sample); sample[0].Value.Uint64() > maxMemory {
			debug.SetTraceback("all")
			panic("the history's memory grows without an end")
		}
	}
}

// readScript returns the script to play.
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
