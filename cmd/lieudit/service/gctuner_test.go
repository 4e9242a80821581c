package service

import (
	"context"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"testing"

	"lieudit/eventstore/deadlinetest"
)

func TestASmallHeapIsCollectedRarely(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		initial int
		live    uint64
		want    int
	}{
		{100, 0, 400}, {100, 1 << 20, 400}, {100, 32 << 20, 400}, {100, 64 << 20, 200}, {100, 127 << 20, 100},
		{100, 128 << 20, 100}, {100, 8 << 30, 100},
		{50, 1 << 20, 50}, {200, 1 << 20, 200}, {-1, 1 << 20, -1}, // the operator's
	} {
		if got := relaxedPercent(c.initial, c.live); got != c.want {
			t.Errorf("GOGC is %d with %d live bytes and %d at the start, want %d", got, c.live, c.initial, c.want)
		}
	}
}

// The limit leaves room for the garbage that GOGC allows, so that it is felt only while the heap grows faster than it is looked at.
func TestTheLimitOfMemoryFollowsWhatIsLive(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		initial int64
		live    uint64
		want    int64
	}{
		{math.MaxInt64, 0, burstBytes}, {math.MaxInt64, 100 << 20, 200<<20 + burstBytes}, {math.MaxInt64, 8 << 30, 16<<30 + burstBytes},
		{1 << 30, 100 << 20, 1 << 30}, {1 << 30, 8 << 30, 1 << 30}, // the operator's
	} {
		got := memoryLimit(c.initial, c.live)
		if got != c.want {
			t.Errorf("the limit is %d with %d live bytes and %d at the start, want %d", got, c.live, c.initial, c.want)
		}
		percent := relaxedPercent(defaultGCPercent, c.live)
		if goal := int64(c.live) + int64(c.live)*int64(percent)/100; c.initial == math.MaxInt64 && got <= goal {
			t.Errorf("the limit is %d with %d live bytes, and GOGC lets the heap grow to %d", got, c.live, goal)
		}
	}
}

// gcPercent is GOGC as it is now.
func gcPercent() uint64 {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// GOGC is a setting of the process: this test is not parallel to others.
func TestManyBytesOfBodiesMakeCollectionsFrequent(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(defaultGCPercent)) // whoever runs the test may have set GOGC and GOMEMLIMIT
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
	ctx, stop := context.WithCancel(t.Context())
	tuner, ended := gcTuner{make(chan bool, 1)}, make(chan struct{})
	go func() {
		defer close(ended)
		tuner.tuneUntilDone(ctx)
	}()
	await := func(what string, isSo func(percent uint64) bool) {
		t.Helper()
		deadlinetest.WaitUntil(t, deadlinetest.DefaultLimit, what, func() bool { return isSo(gcPercent()) })
	}
	deadlinetest.WaitUntil(t, deadlinetest.DefaultLimit, "memory has a soft limit", func() bool { return debug.SetMemoryLimit(-1) < math.MaxInt64 })
	await("a small heap is collected rarely", func(percent uint64) bool { return percent > defaultGCPercent && percent <= maxGCPercent })
	tuner.crossings <- true
	await("it is collected often", func(percent uint64) bool { return percent == tightGCPercent })
	tuner.crossings <- false
	await("it is collected rarely again", func(percent uint64) bool { return percent > defaultGCPercent })
	stop()
	<-ended
	if got := gcPercent(); got != defaultGCPercent {
		t.Errorf("GOGC is %d after the end, want %d", got, defaultGCPercent)
	}
	if got := debug.SetMemoryLimit(-1); got != math.MaxInt64 {
		t.Errorf("memory has the soft limit %d after the end, want none", got)
	}
}
