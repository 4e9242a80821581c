package simulation

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"
)

var (
	seedFlag = flag.Uint64("seed", 1, "of the first history")
	daysFlag = flag.Int("days", 2, "of a history")
	logFlag  = flag.Bool("log", false, "show what the instances log")
)

// TestHistory plays one history.
func TestHistory(t *testing.T) {
	began := time.Now()
	cryptotest.SetGlobalRandom(t, *seedFlag)
	log := slog.New(slog.DiscardHandler)
	if *logFlag {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	folder, script := newFolder(t), Generate(*seedFlag, *daysFlag)
	synctest.Test(t, func(t *testing.T) {
		found, err := Play(t.Context(), script, folder, log)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range found {
			t.Errorf("%s:\n  %s", v.Rule, v.Text)
		}
	})
	fmt.Printf("%d days in %v\n", *daysFlag, time.Since(began))
}
