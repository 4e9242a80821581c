package answer_test

import (
	"math"
	"net/http/httptest"
	"testing"

	"lieudit/http/answer"
)

func TestAnswersAreSentWhole(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	if err := answer.JSON(w, 201, map[string]string{"nom": "<L'Été & co>"}); err != nil {
		t.Fatal(err)
	}
	want := "{\"nom\":\"<L'Été & co>\"}\n"
	if w.Code != 201 || w.Body.String() != want || w.Header().Get("Content-Length") != "25" || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("got %d %q %v, want 201 %q", w.Code, w.Body, w.Header(), want)
	}
}

func TestWhatIsNoJSONIsNotBegun(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	if err := answer.JSON(w, 200, math.Inf(1)); err == nil || len(w.Header()) != 0 || w.Body.Len() != 0 {
		t.Errorf("error %v, sent %v %q", err, w.Header(), w.Body)
	}
}
