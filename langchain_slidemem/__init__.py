"""LangChain adapter: conversion and LangChain's habits; every rule of memory is in `slidemem`."""
