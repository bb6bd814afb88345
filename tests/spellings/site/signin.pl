#!/bin/sh
printf 'Content-Type: text/plain\r\n\r\nTHE LOGIN of signin.pl'
