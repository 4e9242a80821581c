package kit_test

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"

	"lieudit/http/kit"
)

func TestAnswersAreSentWhole(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	if err := kit.WriteJSON(w, 201, map[string]string{"nom": "<L'Été & co>"}); err != nil {
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
	if err := kit.WriteJSON(w, 200, math.Inf(1)); err == nil || len(w.Header()) != 0 || w.Body.Len() != 0 {
		t.Errorf("error %v, sent %v %q", err, w.Header(), w.Body)
	}
}

func TestAnAnswerThatIsCutIsNotTakenForAWholeOne(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		http.NewResponseController(w).Flush()
		w.Write([]byte("half of it"))
		if err := kit.AbortResponse(w); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	resp, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("read %q and no error", text)
	}
}
