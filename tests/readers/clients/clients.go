// What Go sends. Argument: the address to send it to.
package main

import (
	"bytes"
	"encoding/json"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
)

func main() {
	to := os.Args[1]
	plain := url.Values{"username": {"alice"}, "password": {"secret"}}
	name, password := "Zoë O'Neil", "pässword &=+%;\"\n"
	awkward := url.Values{"username": {name}, "password": {password}}
	http.PostForm(to+"/go/plain", plain)
	http.PostForm(to+"/go/form", awkward)
	http.Post(to+"/go/query?"+awkward.Encode(), "", nil)

	for _, path := range []string{"/go/multipart", "/go/file"} {
		var body bytes.Buffer
		writer := multipart.NewWriter(&body)
		writer.WriteField("username", name)
		writer.WriteField("password", password)
		if path == "/go/file" {
			file, _ := writer.CreateFormFile("photo", "photo.png")
			file.Write([]byte("a file"))
		}
		writer.Close()
		http.Post(to+path, writer.FormDataContentType(), &body)
	}

	text, _ := json.Marshal(map[string]string{"username": name, "password": password})
	http.Post(to+"/go/json", "application/json", bytes.NewReader(text))

	request, _ := http.NewRequest("POST", to+"/go/basic", nil)
	request.SetBasicAuth("alice", "secret")
	http.DefaultClient.Do(request)
	request, _ = http.NewRequest("POST", to+"/go/cookie", nil)
	request.AddCookie(&http.Cookie{Name: "lang", Value: "en"})
	request.AddCookie(&http.Cookie{Name: "sid", Value: "alice"})
	http.DefaultClient.Do(request)
}
