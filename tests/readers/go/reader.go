// What Go's net/http and encoding/json read. Argument: the address.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
)

var names = []string{"username", "user_name", "user[name]"}

type rows [][]string

func (found *rows) add(reader, source, name, value string) {
	*found = append(*found, []string{reader, source, name, value})
}

func (found *rows) leaves(reader, source, name string, value any) {
	switch value := value.(type) {
	case string:
		found.add(reader, source, name, value)
	case float64:
		found.add(reader, source, name, fmt.Sprint(value))
	case []any:
		for _, element := range value {
			found.leaves(reader, source, name, element)
		}
	case map[string]any:
		for _, element := range value {
			found.leaves(reader, source, name, element)
		}
	}
}

type login struct {
	Username string `json:"username"`
	User     struct {
		Name string `json:"name"`
	} `json:"user"`
}

func read(w http.ResponseWriter, r *http.Request) {
	found := rows{}
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	query := r.URL.Query()
	r.ParseMultipartForm(32 << 20)
	for _, name := range names {
		for _, value := range query[name] {
			found.add("go", "query", name, value)
		}
		for _, value := range r.PostForm[name] {
			found.add("go", "form", name, value)
		}
		if r.MultipartForm != nil {
			for _, value := range r.MultipartForm.Value[name] {
				found.add("go", "form", name, value)
			}
		}
		for _, value := range r.Form[name] {
			found.add("go", "param", name, value)
		}
	}
	var document map[string]any
	if json.Unmarshal(body, &document) == nil {
		for _, name := range names {
			found.leaves("go", "json", name, document[name])
		}
		if user, ok := document["user"].(map[string]any); ok {
			found.leaves("go", "json", "user.name", user["name"])
		}
	}
	var sent login
	json.NewDecoder(bytes.NewReader(body)).Decode(&sent)
	if sent.Username != "" {
		found.add("go decoder", "json", "username", sent.Username)
	}
	if sent.User.Name != "" {
		found.add("go decoder", "json", "user.name", sent.User.Name)
	}
	for _, cookie := range r.Cookies() {
		if cookie.Name == "sid" {
			found.add("go", "cookie", "sid", cookie.Value)
		}
	}
	if user, _, ok := r.BasicAuth(); ok {
		found.add("go", "basic", "user", user)
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(found)
}

func main() {
	log.SetOutput(io.Discard)
	log.Fatal(http.ListenAndServe(os.Args[1], http.HandlerFunc(read)))
}
